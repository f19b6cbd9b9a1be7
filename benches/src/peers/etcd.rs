//! etcd: a lease that is kept alive, and the lock's transaction.

use super::{KEY, Refused, TTL_SECONDS};
use etcd_client::{
    Client, Compare, CompareOp, LeaseKeepAliveStream, LeaseKeeper, PutOptions, Txn, TxnOp,
};
use tokio::runtime::Runtime;

/// A lock that is held, and its lease.
#[expect(missing_debug_implementations, reason = "the client has none")]
pub struct Etcd {
    runtime: Runtime,
    client: Client,
    keeper: LeaseKeeper,
    answers: LeaseKeepAliveStream,
    lease: i64,
}

impl Etcd {
    /// At `http://host:port`.
    ///
    /// # Errors
    ///
    /// If it does not answer.
    pub fn connect(url: &str) -> Result<Self, Refused> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (client, keeper, answers, lease) = runtime.block_on(async {
            let mut client = Client::connect([url], None).await?;
            client.delete(KEY, None).await?;
            let lease = client.lease_grant(TTL_SECONDS.into(), None).await?.id();
            let (keeper, answers) = client.lease_keep_alive(lease).await?;
            Ok::<_, etcd_client::Error>((client, keeper, answers, lease))
        })?;
        Ok(Self { runtime, client, keeper, answers, lease })
    }

    /// Extends the lease. It is not written to disk: after an election it starts anew.
    pub fn keep_alive(&mut self) {
        let told = self.runtime.block_on(async {
            self.keeper.keep_alive().await?;
            self.answers.message().await
        });
        assert!(told.is_ok_and(|it| it.is_some_and(|it| it.ttl() > 0)), "the lease is alive");
    }

    /// Extends the lease, and writes the key if it is as it was: on disk (`fdatasync` of its log).
    pub fn renew(&mut self) {
        self.keep_alive();
        let own = Compare::lease(KEY, CompareOp::Equal, self.lease);
        let put = || TxnOp::put(KEY, "own", Some(PutOptions::new().with_lease(self.lease)));
        // Created by the first, replaced by the others.
        let txn = Txn::new().when([own]).and_then([put()]).or_else([put()]);
        self.runtime.block_on(self.client.txn(txn)).expect("nobody else writes");
    }

    /// Grants a lease, locks by a transaction, and revokes the lease, which releases the lock.
    pub fn acquire_and_release(&mut self) {
        let done = self.runtime.block_on(async {
            let lease = self.client.lease_grant(TTL_SECONDS.into(), None).await?.id();
            let key = format!("{KEY}-lock");
            let absent = Compare::create_revision(key.clone(), CompareOp::Equal, 0);
            let put = TxnOp::put(key, "own", Some(PutOptions::new().with_lease(lease)));
            let locked = self.client.txn(Txn::new().when([absent]).and_then([put])).await?;
            self.client.lease_revoke(lease).await?;
            Ok::<_, etcd_client::Error>(locked.succeeded())
        });
        assert!(done.expect("it answers"), "nobody else locks");
    }
}
