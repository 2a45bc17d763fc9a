//! Puts the indexes of streamed tool calls right.
//!
//! An index that somebody else gives is a hint, not an identity: servers reuse, omit or skip it. The calls of a choice are
//! kept as a dense list in order of first appearance; each call learns the id and the index that the wire uses for it.

#[cfg(test)]
mod tests;

use super::content::CallFragment;
use crate::edit::Edits;

/// The most tool calls that one stream may hold.
const CALLS_MAX: usize = 1_024;
/// The longest id of a tool call, in bytes.
const ID_BYTES_MAX: usize = 1_024;

/// Says that a stream holds more or longer tool-call ids than gw keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyCalls;

/// The tool calls of a stream so far.
#[derive(Debug, Default)]
pub(super) struct CallList {
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    choice: u32,
    /// The place among the choice's calls, which is the index that the caller sees.
    place: u64,
    /// The index that the wire uses for it.
    index: Option<u64>,
    id: Option<Box<str>>,
    named: bool,
}

impl CallList {
    /// Adds the edits that put the fragments of one chunk right; well-formed fragments need none.
    pub(super) fn repair(
        &mut self,
        text: &str,
        fragments: &[CallFragment<'_>],
        edits: &mut Edits<'_>,
    ) -> Result<(), TooManyCalls> {
        for fragment in fragments {
            let (at, known) = self.place(fragment)?;
            let call = &mut self.calls[at];
            let repeats_id = known && fragment.id.is_some() && call.id.is_some();
            put_index(text, fragment, call.place, repeats_id, edits);
            if let Some((id, _)) = &fragment.id
                && call.id.is_none()
            {
                call.id = Some(id.raw().into());
            }
            if let Some((_, member)) = &fragment.name {
                if call.named {
                    edits.remove_member(text, member.clone());
                }
                call.named = true;
            }
        }
        Ok(())
    }

    /// Returns the place of the fragment's call among all calls of the stream, and learns its id.
    pub(super) fn assign(&mut self, fragment: &CallFragment<'_>) -> Result<usize, TooManyCalls> {
        let (at, _) = self.place(fragment)?;
        let call = &mut self.calls[at];
        if let Some((id, _)) = &fragment.id
            && call.id.is_none()
        {
            call.id = Some(id.raw().into());
        }
        Ok(at)
    }

    /// Returns the call that a fragment belongs to, and whether it had begun before.
    fn place(&mut self, fragment: &CallFragment<'_>) -> Result<(usize, bool), TooManyCalls> {
        if let Some(at) = self.find(fragment) {
            if fragment.index.is_some() {
                self.calls[at].index = fragment.index;
            }
            return Ok((at, true));
        }
        let too_long = fragment.id.as_ref().is_some_and(|(id, _)| id.raw().len() > ID_BYTES_MAX);
        if self.calls.len() >= CALLS_MAX || too_long {
            return Err(TooManyCalls);
        }
        let place = self.calls.iter().filter(|call| call.choice == fragment.choice).count() as u64;
        let call = Call { choice: fragment.choice, place, index: fragment.index, id: None, named: false };
        self.calls.push(call);
        Ok((self.calls.len() - 1, false))
    }

    fn find(&self, fragment: &CallFragment<'_>) -> Option<usize> {
        let latest = |wanted: &dyn Fn(&Call) -> bool| {
            self.calls.iter().rposition(|call| call.choice == fragment.choice && wanted(call))
        };
        let same_index = |call: &Call| fragment.index.is_some() && call.index == fragment.index;
        if let Some((id, _)) = &fragment.id {
            // A call whose id comes after its first fragment learns it.
            return latest(&|call| call.id.as_deref() == Some(id.raw())).or_else(|| {
                latest(&|call| same_index(call) && call.id.is_none() && fragment.name.is_none())
            });
        }
        // Without an id, a name begins a call and anything else goes on with one.
        latest(&same_index).or_else(|| if fragment.name.is_some() { None } else { latest(&|_| true) })
    }
}

/// Makes the fragment say the index `place`, and takes out an id that was sent before.
fn put_index(text: &str, fragment: &CallFragment<'_>, place: u64, repeats_id: bool, edits: &mut Edits<'_>) {
    let id = fragment.id.as_ref().map(|(_, member)| member.clone()).filter(|_| repeats_id);
    match (&fragment.index_value, id) {
        (None, Some(id)) => edits.replace(id, format!("\"index\":{place}")),
        (None, None) => {
            let empty =
                text.get(fragment.start..).is_some_and(|rest| rest.trim_ascii_start().starts_with('}'));
            let comma = if empty { "" } else { "," };
            edits.insert(fragment.start, format!("\"index\":{place}{comma}"));
        }
        (Some(value), id) => {
            if fragment.index != Some(place) {
                edits.replace(value.clone(), place.to_string());
            }
            if let Some(id) = id {
                edits.remove_member(text, id);
            }
        }
    }
}
