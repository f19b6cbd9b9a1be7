//! The suite that every driver passes.
//!
//! A driver's test runs [`Suite::test_all`], or lists each case by name in a harness of its own,
//! which can then report the cases that the driver's [`Capabilities`] rule out as *skipped*:
//!
//! ```text
//! let suite = Suite::new(CAPABILITIES);
//! let trials = suite.cases().map(|case| {
//!     let skipped = case.skipped_for(CAPABILITIES).is_some();
//!     Trial::test(case.name(), move || {
//!         let runtime = Runtime::new()?;
//!         runtime.block_on(async { case.run(target().await).await }).map_err(Failed::from)
//!     })
//!     .with_ignored_flag(skipped)
//! });
//! libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
//! ```
//!
//! Each case gets a [`Target`] with a key prefix that nobody used before, so that the suite also runs
//! on a real server that others use, and needs no deletion.
//!
//! The racing cases send their requests at once from one task. They are as concurrent as the driver
//! is: one that blocks its task inside an operation races with nobody and is not tested by them.

#[macro_use]
mod check;
mod contents;
mod counter;
mod outcomes;
mod races;

pub use check::CaseFailed;

use crate::{key::ObjectKey, store::LeaseStore};
use futures_util::future::BoxFuture;
use std::{fmt, sync::Arc};

/// What a driver can do beyond what every driver must.
///
/// Write it out with `..`, so that a later flag does not break the test:
///
/// ```
/// use lease_core::testing::conformance::Capabilities;
///
/// const CAPABILITIES: Capabilities = Capabilities { tells_age: false, ..Capabilities::ALL };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// The same content written again has the same version (a digest, an S3 ETag).
    pub content_versions: bool,
    /// A read of an object that has not changed is answered by [`Read::NotModified`](crate::Read).
    /// Without it such a read may send the whole object.
    pub not_modified: bool,
    /// The store takes objects over 64 KiB, so that reading them as
    /// [`StoreError::Corrupt`](crate::StoreError) can be tested by writing one.
    pub oversize_is_corrupt: bool,
    /// Reads tell how old the version is.
    pub tells_age: bool,
}

impl Capabilities {
    /// All of them.
    pub const ALL: Self = Self {
        content_versions: true,
        not_modified: true,
        oversize_is_corrupt: true,
        tells_age: true,
    };
    /// None of them: what every driver must do is still tested.
    pub const NONE: Self = Self {
        content_versions: false,
        not_modified: false,
        oversize_is_corrupt: false,
        tells_age: false,
    };
}

/// What one case runs on: a store, and a prefix that no other case uses.
#[derive(Clone, Debug)]
pub struct Target {
    store: Arc<dyn LeaseStore>,
    prefix: ObjectKey,
    increments: u32,
}

impl Target {
    /// The objects of `store` under `prefix`, where there are none yet. The prefix is at most 200
    /// bytes long, so that the case can append to it.
    #[must_use]
    pub fn new(store: impl LeaseStore, prefix: ObjectKey) -> Self {
        Self { store: Arc::new(store), prefix, increments: 200 }
    }

    /// The same, with another number of increments per task in the counter race (200 without it):
    /// for a store whose requests are slow or cost money.
    #[must_use]
    pub fn with_increments(self, increments: u32) -> Self {
        Self { increments, ..self }
    }
}

/// A flag of [`Capabilities`]: its name, and how it is read.
type Flag = (&'static str, fn(Capabilities) -> bool);
type Run = fn(Target) -> BoxFuture<'static, Result<(), CaseFailed>>;

/// One named case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    /// The flag without which the case is skipped.
    needs: Option<Flag>,
    run: Run,
}

impl Case {
    /// Its name: a sentence about the store, in snake case.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The flag of [`Capabilities`] for want of which the case does not apply; `None` if it applies.
    #[must_use]
    pub fn skipped_for(&self, capabilities: Capabilities) -> Option<&'static str> {
        self.needs.and_then(|(flag, has)| (!has(capabilities)).then_some(flag))
    }

    /// Runs the case.
    ///
    /// # Errors
    ///
    /// [`CaseFailed`] says what the store did and what it should have done.
    ///
    /// # Cancel safety
    ///
    /// May be dropped; objects are left behind under the target's prefix, as always.
    pub async fn run(&self, target: Target) -> Result<(), CaseFailed> {
        (self.run)(target).await
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

macro_rules! cases {
    ($($module:ident :: $name:ident $(if $flag:ident)?,)*) => {
        &[$(Case {
            name: stringify!($name),
            needs: cases!(@needs $($flag)?),
            run: |target| Box::pin(async move { $module::$name(&target).await }),
        }),*]
    };
    (@needs) => { None };
    (@needs $flag:ident) => { Some((stringify!($flag), |has: Capabilities| has.$flag)) };
}

/// In the order in which a new driver should make them pass; the hardest comes last.
const CASES: &[Case] = cases![
    outcomes::a_missing_object_is_missing,
    outcomes::what_was_created_is_read_back,
    outcomes::a_create_of_an_existing_object_changes_nothing,
    outcomes::a_replace_of_the_current_version_is_read_back,
    outcomes::a_replace_of_a_stale_version_changes_nothing,
    outcomes::a_replace_of_a_missing_object_creates_nothing,
    outcomes::an_unchanged_object_is_told_as_unchanged,
    outcomes::an_unchanged_object_is_not_sent if not_modified,
    outcomes::a_changed_object_is_found_whatever_was_known,
    outcomes::different_contents_have_different_versions,
    outcomes::the_same_content_has_the_same_version if content_versions,
    outcomes::the_age_of_a_version_is_told if tells_age,
    contents::empty_content_is_content,
    contents::binary_content_is_exact,
    contents::exactly_64_kib_are_read_back,
    contents::one_byte_more_is_corrupt_and_replaceable if oversize_is_corrupt,
    contents::deep_keys_are_keys,
    contents::keys_are_independent,
    races::exactly_one_of_16_creates_wins,
    races::exactly_one_of_16_replaces_wins,
    races::readers_see_whole_contents_and_never_go_back,
    races::a_dropped_write_leaves_the_old_or_the_new,
    counter::a_counter_counts_every_increment,
];

/// All cases, for a driver with certain [`Capabilities`].
///
/// ```
/// use lease_core::{
///     ObjectKey,
///     testing::{
///         MemoryStore,
///         conformance::{Capabilities, Suite, Target},
///     },
/// };
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let suite = Suite::new(Capabilities { tells_age: false, ..Capabilities::ALL });
/// let report = suite
///     .test_all(async |_case| Target::new(MemoryStore::new(), ObjectKey::new("suite").unwrap()))
///     .await?;
/// assert_eq!(report.skipped, [("the_age_of_a_version_is_told", "tells_age")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    capabilities: Capabilities,
}

impl Suite {
    /// The suite for a driver that has these capabilities.
    #[must_use]
    pub const fn new(capabilities: Capabilities) -> Self {
        Self { capabilities }
    }

    /// All cases, those that do not apply included (see [`Case::skipped_for`]).
    pub fn cases(&self) -> impl Iterator<Item = Case> + use<> {
        CASES.iter().copied()
    }

    /// Runs all cases that apply, one after the other, each on its own target.
    ///
    /// # Errors
    ///
    /// [`SuiteFailed`] lists every case that failed; the others were run nevertheless.
    ///
    /// # Cancel safety
    ///
    /// May be dropped; objects are left behind under the targets' prefixes, as always.
    pub async fn test_all(
        &self,
        target: impl AsyncFn(&Case) -> Target,
    ) -> Result<SuiteReport, SuiteFailed> {
        let (mut report, mut failed) = (SuiteReport::default(), Vec::new());
        for case in self.cases() {
            if let Some(flag) = case.skipped_for(self.capabilities) {
                report.skipped.push((case.name(), flag));
                continue;
            }
            match case.run(target(&case).await).await {
                Ok(()) => report.passed.push(case.name()),
                Err(why) => failed.push((case.name(), why)),
            }
        }
        if failed.is_empty() { Ok(report) } else { Err(SuiteFailed { failed, report }) }
    }
}

/// What a run of the suite came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SuiteReport {
    /// The cases that passed.
    pub passed: Vec<&'static str>,
    /// The cases that do not apply, each with the flag that rules it out.
    pub skipped: Vec<(&'static str, &'static str)>,
}

/// The driver failed some cases of the suite.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct SuiteFailed {
    /// The cases that failed, each with what the store did.
    pub failed: Vec<(&'static str, CaseFailed)>,
    /// The others.
    pub report: SuiteReport,
}

impl fmt::Display for SuiteFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (failed, passed) = (self.failed.len(), self.report.passed.len());
        write!(f, "the store fails {failed} cases of the suite ({passed} passed):")?;
        self.failed.iter().try_for_each(|(name, why)| write!(f, "\n  {name}: {why}"))
    }
}

/// As for people: a test that unwraps shows it.
impl fmt::Debug for SuiteFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
