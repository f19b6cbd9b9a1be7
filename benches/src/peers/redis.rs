//! Redis: `SET NX PX`, and Lua that extends or releases only one's own.

use super::{KEY, Refused, TTL_SECONDS};
use redis::{Connection, Script};

/// A lock that is held.
#[expect(missing_debug_implementations, reason = "the connection has none")]
pub struct Redis {
    connection: Connection,
    extend: Script,
    release: Script,
}

const TOKEN: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";

impl Redis {
    /// At `redis://host:port`.
    ///
    /// # Errors
    ///
    /// If it does not answer.
    pub fn connect(url: &str) -> Result<Self, Refused> {
        let mut connection = redis::Client::open(url)?.get_connection()?;
        redis::cmd("SET").arg(KEY).arg(TOKEN).arg("EX").arg(TTL_SECONDS).exec(&mut connection)?;
        let own = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call";
        let extend = Script::new(&format!("{own}('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end"));
        let release = Script::new(&format!("{own}('DEL', KEYS[1]) else return 0 end"));
        Ok(Self { connection, extend, release })
    }

    /// When its log is synced: `always`, before it answers, or `everysec`.
    ///
    /// # Errors
    ///
    /// If it may not be configured.
    pub fn sync(&mut self, policy: &str) -> Result<(), Refused> {
        for (name, value) in [("appendonly", "yes"), ("appendfsync", policy)] {
            redis::cmd("CONFIG").arg("SET").arg(name).arg(value).exec(&mut self.connection)?;
        }
        Ok(())
    }

    /// Extends the lock by a script that looks whose it is.
    pub fn renew(&mut self) {
        let mut call = self.extend.key(KEY);
        let extended = call.arg(TOKEN).arg(TTL_SECONDS * 1_000).invoke::<u8>(&mut self.connection);
        assert_eq!(extended.ok(), Some(1), "it is still held");
    }

    /// `SET NX PX`, and a script that deletes the lock if it is one's own.
    pub fn acquire_and_release(&mut self) {
        let key = format!("{KEY}-lock");
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(TOKEN).arg("NX").arg("PX").arg(TTL_SECONDS * 1_000);
        let locked = set.query::<Option<String>>(&mut self.connection);
        assert_eq!(locked.ok().flatten().as_deref(), Some("OK"), "nobody else locks");
        let released = self.release.key(&key).arg(TOKEN).invoke::<u8>(&mut self.connection);
        assert_eq!(released.ok(), Some(1), "it was still held");
    }
}
