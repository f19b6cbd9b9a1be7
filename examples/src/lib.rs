//! Programs to read and to run; there is nothing to link here.
//!
//! ```sh
//! cargo run --example quickstart      # one instance, one lease in a directory
//! cargo run --example failover        # two processes share it, and one of them is killed, frozen, …
//! ```
