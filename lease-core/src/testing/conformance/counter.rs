//! The race that finds what the others miss: a counter that many tasks increment.

use super::{
    Target,
    check::{CaseFailed, brief, yield_now},
};
use crate::{
    key::ObjectKey,
    store::{StoreErrorKind, Version},
};
use bytes::Bytes;
use futures_util::future::join_all;

const TASKS: usize = 8;

/// One number for each task, so that a task in doubt can tell whether its own increment landed, and
/// sees at once when another task's write has undone it.
type Counts = [u32; TASKS];

pub(super) async fn a_counter_counts_every_increment(on: &Target) -> Result<(), CaseFailed> {
    let key = on.key("counter")?;
    on.create(&key, text(Counts::default())).await?;
    let tasks = (0..TASKS).map(|task| Incrementer { on, key: &key, task, done: 0 }.run());
    join_all(tasks).await.into_iter().collect::<Result<(), CaseFailed>>()?;

    let (counts, _) = read(on, &key).await?;
    let (sum, expected) = (counts.iter().sum::<u32>(), on.increments * 8);
    ensure!(sum == expected, "{expected} increments succeeded, but the counter shows {sum}");
    Ok(())
}

struct Incrementer<'a> {
    on: &'a Target,
    key: &'a ObjectKey,
    task: usize,
    /// How many increments are known to have landed.
    done: u32,
}

impl Incrementer<'_> {
    async fn run(mut self) -> Result<(), CaseFailed> {
        let (task, target) = (self.task, self.on.increments);
        // A write is refused because another task's landed, and there are only so many of those.
        // Four times as many, for stores that refuse both of two writes in flight.
        let mut tries = 4 * TASKS as u64 * u64::from(target);
        let mut in_doubt = false;
        while self.done < target {
            ensure!(
                tries > 0,
                "task {task} was refused again and again at {} increments",
                self.done
            );
            tries -= 1;
            let (mut counts, version) = read(self.on, self.key).await?;
            let (shown, done) = (counts[task], self.done);
            if in_doubt && shown == done + 1 {
                in_doubt = false;
                self.done = shown;
                continue;
            }
            ensure!(shown == done, "{done} increments of task {task} landed, a read shows {shown}");
            counts[task] += 1;
            yield_now().await;
            let write = self.on.store.replace_if_match(self.key, text(counts), &version).await;
            match write.map_err(|error| (error.kind(), error)) {
                Ok(_) => {
                    in_doubt = false;
                    self.done += 1;
                }
                Err((StoreErrorKind::Precondition | StoreErrorKind::Contended, _)) => {}
                Err((StoreErrorKind::InDoubt, _)) => in_doubt = true,
                Err((kind, error)) => {
                    return Err(CaseFailed::new(format!(
                        "an increment failed ({kind:?}): {error}"
                    )));
                }
            }
            yield_now().await;
        }
        Ok(())
    }
}

async fn read(on: &Target, key: &ObjectKey) -> Result<(Counts, Version), CaseFailed> {
    let (content, version) = on.found(key).await?;
    let counts = std::str::from_utf8(&content).ok().and_then(|text| {
        let counts: Vec<u32> = text.split(' ').map(|it| it.parse().ok()).collect::<Option<_>>()?;
        counts.try_into().ok()
    });
    match counts {
        Some(counts) => Ok((counts, version)),
        None => Err(CaseFailed::new(format!("a read told {}, never written", brief(&content)))),
    }
}

fn text(counts: Counts) -> Bytes {
    Bytes::from(counts.map(|count| count.to_string()).join(" "))
}
