//! The suite that every driver passes, each case by its name, on three kinds of servers.

use crate::run;
use lease_core::{
    ObjectKey,
    testing::conformance::{Capabilities, Case, Suite, Target},
};
use lease_s3::testing::{Quirk, TestServer};
use libtest_mimic::{Failed, Trial};

const SERVERS: [(&str, &[Quirk]); 3] = [
    ("plain", &[]),
    ("bare", &[Quirk::BareIfMatch, Quirk::MissingIs412]),
    ("no_etag_on_put", &[Quirk::NoEtagOnPut, Quirk::UnquotedEtags]),
];

pub(crate) fn trials() -> Vec<Trial> {
    let suite = Suite::new(Capabilities::ALL);
    SERVERS
        .into_iter()
        .flat_map(|(name, quirks)| suite.cases().map(move |case| trial(name, quirks, case)))
        .collect()
}

fn trial(name: &str, quirks: &'static [Quirk], case: Case) -> Trial {
    let body = move || {
        run(async move {
            let server = TestServer::start().await?;
            server.set_quirks(quirks);
            let store = server.options("p").connect().await?;
            let target = Target::new(store, ObjectKey::new("suite")?).with_increments(20);
            case.run(target).await.map_err(Failed::from)
        })
    };
    Trial::test(format!("conformance::{name}::{}", case.name()), body)
}
