//! The pages of an answer, counted, so that no server sends pages without end.

use prost::Message;

use crate::exit::{Exit, Failure};

/// The number of results in a request.
pub(crate) const PAGE_SIZE: i32 = 1_000;
/// The maximum size of all pages of one answer, encoded. A page counts as this many bytes more, so their number has a limit too.
const BYTES_MAX: usize = 1 << 30;
const PAGE_COST: usize = 1 << 16;
const HINT: &str = "check that it is a server of Decree; ask for one namespace with -n";

/// The pages received so far, and the token of the next.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    bytes: usize,
    /// The token of the next request; empty for the first.
    pub(crate) token: String,
}

impl Pages {
    /// Counts a page. Returns whether another page follows.
    pub(crate) fn add(&mut self, page: &impl Message, next_token: &str) -> Result<bool, Failure> {
        self.bytes += page.encoded_len() + PAGE_COST;
        if self.bytes > BYTES_MAX {
            let failure = Failure::new(Exit::Refused, "the server sends pages without end");
            return Err(failure.hint(HINT));
        }
        next_token.clone_into(&mut self.token);
        Ok(!next_token.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use decree_api::v1;

    use super::*;

    #[test]
    fn pages_without_end_are_refused() {
        let page = v1::ListReplicaSetsResponse::default();
        for (bytes, next_token, expected) in [
            (0, "b", Some(true)),
            (0, "", Some(false)),
            (BYTES_MAX - PAGE_COST, "b", Some(true)),
            (BYTES_MAX - PAGE_COST + 1, "b", None),
        ] {
            let mut pages = Pages {
                bytes,
                token: "a".to_owned(),
            };
            assert_eq!(pages.add(&page, next_token).ok(), expected);
        }
    }
}
