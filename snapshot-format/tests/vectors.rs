//! The vectors of `tests/vectors`, each a test of its own: what a catalog says of it, and what comes
//! of opening it. `tests/snapshot_vectors.py` makes them, and says what their fields are.
#![allow(clippy::unwrap_used, reason = "these are tests, whatever they are called")]

use futures_executor::block_on;
use libtest_mimic::{Arguments, Failed, Trial};
use snapshot_format::{
    Catalog,
    catalog::{Refusal, Uncheckable, Verdict},
    cipher::{Cipher, Unopenable},
    header::BadHeader,
    lease_core::{auth::ClusterSecret, key::ClusterName},
    name::{Application, Layout, SnapshotName},
    object_store::{ObjectStoreExt as _, memory::InMemory, path::Path},
    stream::{self, Headerless, RestoreError},
};
use std::{collections::HashMap, fs, path, sync::Arc};

/// How many there are, and how many of them are not to be restored.
const VECTORS: usize = 116;
const NEGATIVE: usize = 102;

fn main() {
    let directory = path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let (mut trials, mut negative) = (Vec::new(), 0);
    for entry in fs::read_dir(directory).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let vector = Vector::read(&fs::read(&file).unwrap());
        negative += usize::from(!vector.is_positive());
        trials.push(Trial::test(name, move || vector.check()));
    }
    let counted = (trials.len(), negative);
    let count = move || -> Result<(), Failed> {
        println!("{} vectors, {} of them negative", counted.0, counted.1);
        assert_eq!(counted, (VECTORS, NEGATIVE), "a vector was added or lost");
        assert!(counted.0 >= 60 && 4 * counted.1 >= 3 * counted.0);
        Ok(())
    };
    trials.push(Trial::test("none_is_missing", count));
    let raised = "what_age_itself_seals_opens_once_the_limit_is_raised";
    trials.push(Trial::test(raised, opens_with_a_raised_limit));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

struct Vector {
    fields: HashMap<String, String>,
    content: Vec<u8>,
}

impl Vector {
    fn read(file: &[u8]) -> Self {
        let end = file.windows(2).position(|window| window == b"\n\n").unwrap();
        let fields = str::from_utf8(&file[..end]).unwrap().lines();
        let fields = fields.map(|line| line.split_once(": ").unwrap());
        let owned = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { fields: owned.collect(), content: file[end + 2..].to_vec() }
    }

    fn is_positive(&self) -> bool {
        ["ok ", "headerless "].iter().any(|good| self.fields["open"].starts_with(good))
    }

    fn cipher(&self) -> Cipher {
        let digits = &self.fields["secret"];
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        let secret: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        Cipher::new(&ClusterSecret::new(&secret).unwrap())
    }

    fn key(&self) -> Path {
        Path::parse(&self.fields["key"]).unwrap()
    }

    fn check(&self) -> Result<(), Failed> {
        let (verdict, name) = block_on(self.verdict());
        let opened = name.map_or("no-snapshot".to_owned(), |name| self.open(&name));
        let expected = (&self.fields["verdict"], &self.fields["open"]);
        if (&verdict, &opened) == expected {
            return Ok(());
        }
        let found = (verdict, opened);
        Err(format!("{}: {found:?} instead of {expected:?}", self.fields["about"]).into())
    }

    async fn verdict(&self) -> (String, Option<SnapshotName>) {
        let store = InMemory::new();
        store.put(&self.key(), self.content.clone().into()).await.unwrap();
        let catalog = Catalog::new(Arc::new(store), layout(), self.cipher());
        let listing = catalog.list().await.unwrap();
        match &*listing.snapshots {
            [listed] => (code(&catalog.check(listed).await), Some(listed.name)),
            _ => ("no-snapshot".to_owned(), None),
        }
    }

    fn open(&self, name: &SnapshotName) -> String {
        let open = |headerless| {
            let mut database = Vec::new();
            let (cipher, layout) = (self.cipher(), layout());
            stream::open(&cipher, &layout, name, headerless, &*self.content, &mut database)
                .map(|_| digest(&database))
        };
        match open(Headerless::Refuse) {
            Ok(digest) => format!("ok {digest}"),
            Err(RestoreError::Refused(why)) => code(&Verdict::Refused(why)),
            Err(RestoreError::NewerFormat { format }) => format!("newer-format {format}"),
            Err(RestoreError::Damaged(why)) => format!("damaged {}", unopenable(why)),
            Err(RestoreError::Headerless) => match open(Headerless::Accept) {
                Ok(digest) => format!("headerless {digest}"),
                Err(error) => format!("error {error}"),
            },
            Err(error) => format!("error {error}"),
        }
    }
}

fn layout() -> Layout {
    Layout::new(Application::new("orders").unwrap(), ClusterName::new("prod").unwrap())
}

fn digest(database: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(database).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A verdict as the vectors spell it.
fn code(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Verified(_) => "verified".to_owned(),
        Verdict::Legacy => "legacy".to_owned(),
        Verdict::Unchecked(Uncheckable::NewerFormat { format }) => {
            format!("unchecked newer-format {format}")
        }
        Verdict::Unchecked(why) => format!("unchecked {why}"),
        Verdict::Refused(why) => format!("refused {}", refusal(why)),
    }
}

fn refusal(why: &Refusal) -> String {
    match why {
        Refusal::OtherCluster => "other-cluster".to_owned(),
        Refusal::OtherEpoch { header } => format!("other-epoch {header}"),
        Refusal::OtherTime { header } => format!("other-time {header}"),
        Refusal::OtherSuffix => "other-suffix".to_owned(),
        Refusal::OtherApplication => "other-application".to_owned(),
        Refusal::BadHeader { why: BadHeader::Cut } => "bad-header cut".to_owned(),
        Refusal::BadHeader { why: BadHeader::NoLineBreak } => "bad-header no-line-break".to_owned(),
        Refusal::BadHeader { .. } => "bad-header unreadable".to_owned(),
        Refusal::DoesNotOpen { why } => format!("does-not-open {}", unopenable(*why)),
        other => format!("{other:?}"),
    }
}

fn unopenable(why: Unopenable) -> String {
    match why {
        Unopenable::Altered => "altered".to_owned(),
        Unopenable::Cut => "cut".to_owned(),
        Unopenable::ForeignRecipient => "foreign-recipient".to_owned(),
        Unopenable::NotSealed => "not-sealed".to_owned(),
        Unopenable::TooMuchWork { found } => format!("too-much-work {found}"),
        Unopenable::WrongSecret => "wrong-secret".to_owned(),
        other => format!("{other:?}"),
    }
}

fn opens_with_a_raised_limit() -> Result<(), Failed> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/seal-work-factor-18.snapshot");
    let vector = Vector::read(&fs::read(file)?);
    let cipher = vector.cipher().with_work_factor_limit(18)?;
    let name = layout().parse(&vector.key()).unwrap();
    let mut database = Vec::new();
    stream::open(&cipher, &layout(), &name, Headerless::Refuse, &*vector.content, &mut database)?;
    assert!(database.starts_with(b"SQLite"));
    Ok(())
}
