//! Arbitrary bytes as the key, the plaintext or all of a stored snapshot.

use age::secrecy::SecretString;
use lease_core::{auth::ClusterSecret, key::ClusterName};
use snapshot_format::{
    catalog::{Refusal, Uncheckable, Verdict, judge},
    cipher::{Cipher, MAX_SEALED_START_BYTES},
    fencing::Epoch,
    header::{Header, MAX_LINE_BYTES, MAX_START_BYTES, Start},
    name::{Application, Layout, SnapshotName},
    object_store::path::Path,
    stream::{self, Headerless, RestoreError},
};
use std::{
    io::{Read as _, Write as _},
    iter,
    sync::LazyLock,
};

/// The secret of the vectors, so that what they sealed opens here.
const SECRET_HEX: &str = "551fde2fa1e9e759608ba48de7e14df7397a762c2a88c4ce00e3a08fa8662453";

static CIPHER: LazyLock<Cipher> = LazyLock::new(|| {
    let byte = |at: usize| u8::from_str_radix(&SECRET_HEX[at..at + 2], 16).expect("digits");
    let secret: Vec<u8> = (0..SECRET_HEX.len()).step_by(2).map(byte).collect();
    Cipher::new(&ClusterSecret::new(&secret).expect("32 bytes"))
});
/// Seals with the least work, so that the time goes into executions.
static QUICK: LazyLock<age::scrypt::Recipient> = LazyLock::new(|| {
    let passphrase = SecretString::from(CIPHER.passphrase().to_string());
    let mut recipient = age::scrypt::Recipient::new(passphrase);
    recipient.set_work_factor(1);
    recipient
});
static LAYOUT: LazyLock<Layout> = LazyLock::new(|| {
    Layout::new(
        Application::new("orders").expect("a name"),
        ClusterName::new("prod").expect("a name"),
    )
});
/// The name that the vectors are kept under.
static NAME: LazyLock<SnapshotName> = LazyLock::new(|| {
    let at = "2026-10-12T09:58:41.517Z".parse().expect("a time");
    SnapshotName::new(at, Epoch::new(7).expect("not zero"))
});

/// The first byte says what the rest is.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind {
        b'k' => key(rest),
        b'p' => plaintext(rest),
        b's' => sealed(rest),
        _ => {}
    }
}

/// A name has one spelling, and two names have an order that is that of epochs, then times.
fn key(text: &[u8]) {
    let Ok(text) = str::from_utf8(text) else { return };
    let mut names = text.lines().take(2).filter_map(|line| {
        let key = Path::parse(line).ok()?;
        let name = LAYOUT.parse(&key)?;
        assert_eq!(LAYOUT.key(&name), key, "a name with two spellings");
        assert_eq!(name.at().to_string().parse(), Ok(name.at()));
        Some(name)
    });
    if let (Some(a), Some(b)) = (names.next(), names.next()) {
        let told = |name: &SnapshotName| (name.epoch().as_u64(), name.at().to_string());
        assert_eq!(a.mark().cmp(&b.mark()), told(&a).cmp(&told(&b)));
        assert_eq!(a == b, a.cmp(&b).is_eq());
        if a.mark() != b.mark() {
            assert_eq!(a.cmp(&b), b.mark().cmp(&a.mark()));
        }
    }
}

/// What a plaintext starts with decides; under the seal the same comes out, and the database whole.
fn plaintext(plaintext: &[u8]) {
    let start = Start::read(LAYOUT.application(), plaintext);
    let window = &plaintext[..plaintext.len().min(MAX_START_BYTES)];
    assert_eq!(Start::read(LAYOUT.application(), window), start, "it looks further than it says");
    if let Start::Header { header, bytes } = &start {
        coherent(header, &plaintext[..*bytes]);
    }
    let whole = seal(plaintext);
    let verdict = judge(&CIPHER, &LAYOUT, &NAME, &whole);
    match (&start, &verdict) {
        (Start::Header { header, .. }, Verdict::Verified(verified)) => {
            assert_eq!((header, header.name()), (verified, *NAME));
            assert_eq!(header.cluster, *LAYOUT.cluster());
        }
        (Start::Header { header, .. }, Verdict::Refused(_)) => {
            assert!(header.name() != *NAME || header.cluster != *LAYOUT.cluster());
        }
        (Start::Bad(bad), Verdict::Refused(Refusal::BadHeader { why })) => assert_eq!(bad, why),
        (Start::OtherApplication, Verdict::Refused(Refusal::OtherApplication))
        | (Start::NewerFormat { .. }, Verdict::Unchecked(Uncheckable::NewerFormat { .. }))
        | (Start::Headerless, Verdict::Legacy) => {}
        other => panic!("{other:?}"),
    }
    let expected = match &start {
        Start::Header { bytes, .. } => &plaintext[*bytes..],
        _ => plaintext,
    };
    if let Some(database) = opened(&whole, &verdict) {
        assert!(database == expected, "another database");
    }
}

/// A header reads back as it was written, and another reader of JSON agrees on it.
fn coherent(header: &Header, text: &[u8]) {
    let again = header.encode(LAYOUT.application());
    let bytes = again.len();
    let header = header.clone();
    assert!(text.len() <= MAX_START_BYTES && bytes <= MAX_START_BYTES);
    let line = text.splitn(2, |byte| *byte == b'\n').nth(1).expect("two lines");
    assert!(line.len() <= MAX_LINE_BYTES && line.ends_with(b"\n"));
    let value: serde_json::Value = serde_json::from_slice(line).expect("it was read");
    assert_eq!(value["epoch"].as_u64(), Some(header.epoch.as_u64()));
    assert_eq!(value["cluster"].as_str(), Some(header.cluster.as_str()));
    let read = Start::read(LAYOUT.application(), again.as_bytes());
    assert_eq!(read, Start::Header { header, bytes }, "it reads back as another");
}

/// Whatever is stored: no panic, and reading its start says what opening all of it says.
fn sealed(whole: &[u8]) {
    let start = &whole[..whole.len().min(MAX_SEALED_START_BYTES)];
    let verdict = judge(&CIPHER, &LAYOUT, &NAME, start);
    if let Some(database) = opened(whole, &verdict) {
        let mut plaintext = Vec::new();
        let mut opener = CIPHER.open(whole).expect("it was opened");
        opener.read_to_end(&mut plaintext).expect("it was opened");
        assert!(plaintext.ends_with(&database));
    }
}

/// The database, if the verdict on the start lets it be restored and the rest is whole.
fn opened(whole: &[u8], verdict: &Verdict) -> Option<Vec<u8>> {
    let open = |headerless| {
        let mut database = Vec::new();
        let opened = stream::open(&CIPHER, &LAYOUT, &NAME, headerless, whole, &mut database)?;
        assert_eq!(opened.database_bytes, database.len() as u64);
        assert_eq!(opened.header.as_ref(), verdict.verified());
        Ok::<_, RestoreError>(database)
    };
    match (verdict, open(Headerless::Refuse)) {
        (Verdict::Verified(_), Ok(database)) => Some(database),
        (Verdict::Verified(_), Err(RestoreError::Damaged(_))) => None,
        (Verdict::Legacy, Err(RestoreError::Headerless)) => match open(Headerless::Accept) {
            Ok(database) => Some(database),
            Err(RestoreError::Damaged(_)) => None,
            Err(other) => panic!("{other:?}"),
        },
        (Verdict::Refused(why), Err(RestoreError::Refused(again))) => {
            assert_eq!(*why, again);
            None
        }
        (Verdict::Unchecked(_), Err(RestoreError::NewerFormat { .. })) => None,
        (verdict, opened) => panic!("{verdict:?}, and then {opened:?}"),
    }
}

fn seal(plaintext: &[u8]) -> Vec<u8> {
    let recipients = iter::once(&*QUICK as &dyn age::Recipient);
    let encryptor = age::Encryptor::with_recipients(recipients).expect("one recipient");
    let mut writer = encryptor.wrap_output(Vec::new()).expect("memory does not fail");
    writer.write_all(plaintext).expect("memory does not fail");
    writer.finish().expect("memory does not fail")
}
