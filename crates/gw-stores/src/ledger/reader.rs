//! The reader's thread: queries on a connection of its own.

use std::{
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread::JoinHandle,
};

use gw_types::GatewayError;
use tokio::sync::oneshot;

use super::reads::Unreadable;
use crate::sql::{Db, SqlError};

/// Queries that wait at once; more are refused as `Overloaded`.
const WAITING_MAX: usize = 64;

type Question = Box<dyn FnOnce(Result<&Db, SqlError>) + Send>;

/// Asks the reader's thread. A thread of its own, so that the ledger works under any runtime, or under none.
#[derive(Debug)]
pub(super) struct Reader {
    questions: Option<SyncSender<Question>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Takes over a connection of its own.
    pub(super) fn start(db: Db) -> std::io::Result<Self> {
        let (questions, asked) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("gw-ledger-read".to_owned())
            .spawn(move || answer_all(&db, &asked))?;
        Ok(Self { questions: Some(questions), thread: Some(thread) })
    }

    /// Asks one question; dropping the future leaves its answer unheard.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db) -> Result<T, Unreadable> + Send + 'static,
    ) -> Result<T, GatewayError> {
        let (reply, answer) = oneshot::channel();
        let asked: Question = Box::new(move |db| {
            // Whoever asked may be gone.
            let _unheard = reply.send(db.map_err(Unreadable::from).and_then(question));
        });
        let Some(questions) = &self.questions else { return Err(Unreadable::Now.into()) };
        questions.try_send(asked).map_err(|error| match error {
            TrySendError::Full(_) | TrySendError::Disconnected(_) => GatewayError::from(Unreadable::Now),
        })?;
        Ok(answer.await.unwrap_or(Err(Unreadable::Now))?)
    }

    /// Answers what was asked so far, and closes the connection.
    pub(super) fn stop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

fn answer_all(db: &Db, asked: &Receiver<Question>) {
    for question in asked {
        question(db.revive().map(|()| db));
    }
}
