//! Programs to read and to run; there is nothing to link here.
//!
//! ```sh
//! cargo run --example quickstart      # one instance, one lease in a directory
//! cargo run --example singleton_job -- --name a      # a job that runs once across replicas
//! cargo run --example leader_only_http -- --name a   # routes that answer only where it is active
//! cargo run --example sqlite_snapshot  # a database handed on by snapshots, and a rollback refused
//! cargo run --example fenced_object   # a writer is paused, wakes up, and is refused by the object
//! cargo run --example fenced_sql      # the same, refused by one SQL statement
//! cargo run --example failover        # two processes share it, and one of them is killed, frozen, …
//! cargo run --example soak           # clusters of processes under faults, and the audit of what they did
//! cargo run --example audit -- ledger.jsonl   # did two instances ever act at once?
//! cargo run --example s3_inspect -- 's3://bucket/prefix?endpoint=…' --cluster orders   # who holds it
//! ```
