//! The table of docs/fencing.md behind its gate.

use fencing::{
    Epoch, Stale,
    testing::gates::{Resource, Trouble},
};
use std::sync::Arc;

/// The statements, by their names, as the document has them.
pub(crate) fn statement(name: &str) -> &'static str {
    let document = include_str!("../../../docs/fencing.md");
    let (_, from) = document.split_once(&format!("<!-- sql: {name} -->\n```sql\n")).unwrap();
    from.split_once("\n```").unwrap().0
}

/// One connection.
pub(crate) trait Connection: Send {
    /// Runs a statement with at most a key, a token and a text; how many rows it changed.
    fn change(
        &mut self,
        sql: &str,
        id: &str,
        epoch: i64,
        body: Option<&str>,
    ) -> Result<u64, Trouble>;

    /// What a row has. `None`: there is no such row.
    fn row(&mut self, id: &str) -> Result<Option<(i64, Option<String>)>, Trouble>;

    /// Runs statements without parameters.
    fn run(&mut self, sql: &str) -> Result<(), Trouble>;

    /// Begins a transaction that writes.
    fn begin(&mut self) -> Result<(), Trouble>;

    /// From now on a lock that is not free within this time is an error.
    fn wait_no_longer_than_100_ms(&mut self) -> Result<(), Trouble>;

    /// The token of every change of a row, in the order in which they were made.
    fn audit(&mut self, id: &str) -> Result<Vec<i64>, Trouble>;
}

/// Where connections come from.
pub(crate) type Server = Arc<dyn Fn() -> Box<dyn Connection> + Send + Sync>;

/// A token as the column has it.
pub(crate) fn column(token: Epoch) -> Result<i64, Trouble> {
    Ok(i64::try_from(token.as_u64())?)
}

pub(crate) fn epoch(column: i64) -> Epoch {
    Epoch::new(column.try_into().unwrap()).unwrap()
}

/// One row.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) connection: Box<dyn Connection>,
}

impl Row {
    /// One statement, and what the number of rows says.
    pub(crate) fn pass(
        &mut self,
        statement_name: &str,
        token: i64,
        body: Option<&str>,
    ) -> Result<Result<(), Stale>, Trouble> {
        match self.connection.change(statement(statement_name), &self.id, token, body)? {
            1 => Ok(Ok(())),
            0 => {
                let (highest, _) = self.connection.row(&self.id)?.ok_or("refused by no row")?;
                let stale = Stale::check(epoch(token), Some(epoch(highest)));
                Ok(Err(stale.err().ok_or("refused by a row that has no larger token")?))
            }
            other => Err(format!("{other} rows changed").into()),
        }
    }
}

/// The largest tokens of the steps do not fit into a column. They are put below what does, in their
/// order, and back.
const SHIFT: u64 = 1 << 63;

fn shifted(token: Epoch) -> i64 {
    column(token).unwrap_or_else(|_| i64::try_from(token.as_u64() - SHIFT).unwrap())
}

fn unshifted(token: Epoch) -> Epoch {
    let is_shifted = token.as_u64() > u64::MAX - SHIFT - 1000;
    if is_shifted { Epoch::new(token.as_u64() + SHIFT).unwrap() } else { token }
}

fn answer(passed: Result<(), Stale>) -> Result<(), Stale> {
    passed.or_else(|Stale { presented, highest, .. }| {
        Stale::check(unshifted(presented), Some(unshifted(highest)))
    })
}

impl Resource for Row {
    fn write(&mut self, token: Epoch, value: u64) -> Result<Result<(), Stale>, Trouble> {
        Ok(answer(self.pass("write", shifted(token), Some(&value.to_string()))?))
    }

    fn raise(&mut self, token: Epoch) -> Result<Result<(), Stale>, Trouble> {
        Ok(answer(self.pass("raise", shifted(token), None)?))
    }

    fn highest(&mut self) -> Result<Option<Epoch>, Trouble> {
        Ok(self.connection.row(&self.id)?.map(|(token, _)| unshifted(epoch(token))))
    }

    fn value(&mut self) -> Result<Option<u64>, Trouble> {
        match self.connection.row(&self.id)?.and_then(|(_, body)| body) {
            None => Ok(None),
            Some(body) => Ok(Some(body.parse()?)),
        }
    }
}
