//! A streamed answer: pieces of the body in, items out, no task and no channel between.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use gw_types::{BoundedText, GatewayError, Secret, StreamItem};

use super::{
    answer::{dress, served_model, without_secrets},
    decoder::Decoder,
};
use crate::transport::UpstreamBody;

/// The items of a streamed answer. Dropping it gives the connection up.
pub(super) struct HttpStream {
    body: UpstreamBody,
    decoder: Decoder,
    /// Items of the last piece; its bound is the piece's own.
    decoded: VecDeque<StreamItem>,
    ended: bool,
    id: Option<BoundedText>,
    secrets: Arc<[Secret]>,
}

impl HttpStream {
    pub(super) fn new(
        body: UpstreamBody,
        decoder: Decoder,
        id: Option<BoundedText>,
        secrets: Arc<[Secret]>,
    ) -> Self {
        Self { body, decoder, decoded: VecDeque::new(), ended: false, id, secrets }
    }

    /// Passes an item on; the last one gives the connection back.
    fn pass(&mut self, mut item: StreamItem, cx: &mut Context<'_>) -> StreamItem {
        item.facts.served_model = served_model(item.facts.served_model.take(), &self.secrets);
        if let Some(loss) = &mut item.facts.loss {
            without_secrets(loss, &self.secrets);
        }
        if let Some(error) = item.facts.error.take() {
            item.facts.error = Some(dress(error, self.id.as_ref(), &self.secrets));
            self.end();
        } else if item.facts.terminal {
            // What is still to come is the end of the framing; the caller does not wait for it.
            self.body.release(cx);
            self.end();
        }
        item
    }

    fn end(&mut self) {
        self.ended = true;
        self.decoded.clear();
        self.body.close();
    }

    fn fail(&mut self, error: GatewayError) -> GatewayError {
        self.end();
        dress(error, self.id.as_ref(), &self.secrets)
    }
}

impl Stream for HttpStream {
    type Item = Result<StreamItem, GatewayError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(item) = this.decoded.pop_front() {
                return Poll::Ready(Some(Ok(this.pass(item, cx))));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            match ready!(this.body.poll_piece(cx)) {
                Some(Ok(piece)) => this.decoder.push(piece, &mut this.decoded),
                Some(Err(fault)) => return Poll::Ready(Some(Err(this.fail(fault.of_stream())))),
                None => {
                    let last = this.decoder.end();
                    return Poll::Ready(Some(match last {
                        Ok(item) => Ok(this.pass(item, cx)),
                        Err(error) => Err(this.fail(error.ambiguous())),
                    }));
                }
            }
        }
    }
}
