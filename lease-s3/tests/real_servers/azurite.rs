//! The same on Azurite, Azure's own emulator of its Blob Storage (feature `azure`).

use lease_core::{
    ObjectKey,
    testing::conformance::{Capabilities, Case, Suite, Target},
};
use lease_s3::{Dialect, Provider, S3Store};
use libtest_mimic::{Failed, Trial};
use object_store::{
    ClientOptions,
    azure::{AzureAccessKey, AzureAuthorizer, AzureCredential},
    client::{HttpConnector as _, HttpRequest, HttpRequestBody, ReqwestConnector},
};

/// Azure's ETags are counters.
const AZURE: Capabilities = Capabilities { content_versions: false, ..Capabilities::ALL };

pub(crate) fn trials() -> Vec<Trial> {
    // `HA_TEST_AZURITE_URL=az://container/prefix?account=…&endpoint=…`, and the account's key in
    // `AZURE_STORAGE_ACCOUNT_KEY`, where the driver itself looks for it.
    let url = std::env::var("HA_TEST_AZURITE_URL").ok();
    let is_unset = url.is_none();
    let of_probe = url.clone();
    let probe = move || crate::run(probe(of_probe.unwrap()));
    let mut trials = vec![Trial::test("azurite::probe", probe).with_ignored_flag(is_unset)];
    for case in Suite::new(AZURE).cases() {
        let url = url.clone();
        let body = move || crate::run(conforms(url.unwrap(), case));
        let ignored = is_unset || case.skipped_for(AZURE).is_some();
        trials.push(
            Trial::test(format!("azurite::{}", case.name()), body).with_ignored_flag(ignored),
        );
    }
    trials
}

async fn probe(url: String) -> Result<(), Failed> {
    create_container(&url).await?;
    let store = S3Store::from_url(&url)?.connect().await?;
    println!("AZURITE: accepted, {:?} dialect, {:?}", store.dialect(), store.probe_report());
    assert_eq!((store.provider(), store.dialect()), (Provider::Azure, Dialect::Quoted));
    Ok(())
}

async fn conforms(url: String, case: Case) -> Result<(), Failed> {
    create_container(&url).await?;
    let store = S3Store::from_url(&url)?.connect().await?;
    let prefix = format!("suite-{:x}-{}", crate::fresh(), case.name().replace('_', "-"));
    let target = Target::new(store, ObjectKey::new(&prefix)?).with_increments(10);
    case.run(target).await.map_err(Failed::from)
}

/// Creates the container of the URL; one that is there already will do.
async fn create_container(url: &str) -> Result<(), Failed> {
    let value = |name: &str| {
        let (_, rest) = url.split_once(&format!("{name}="))?;
        rest.split('&').next()
    };
    let (account, endpoint) = (value("account").unwrap(), value("endpoint").unwrap());
    let container = url.trim_start_matches("az://").split('/').next().unwrap();
    let key = std::env::var("AZURE_STORAGE_ACCOUNT_KEY")?;
    let credential = AzureCredential::AccessKey(AzureAccessKey::try_new(&key)?);
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.method_mut() = http::Method::PUT;
    *request.uri_mut() = format!("{endpoint}/{container}?restype=container").parse()?;
    request.headers_mut().insert("content-length", 0.into());
    AzureAuthorizer::new(&credential, account).try_authorize(&mut request)?;
    let client =
        ReqwestConnector::default().connect(&ClientOptions::new().with_allow_http(true))?;
    match client.execute(request).await?.status().as_u16() {
        201 | 409 => Ok(()),
        status => Err(format!("creating the container was answered {status}").into()),
    }
}
