//! Selection by `-l` and `-U` of `qselect`, `qstat` and `qhost`.
//!
//! The [`Mode`](super::Mode) decides what counts: queue instances are selected on an empty cluster,
//! hosts by what they have now. Which names and patterns were meant is not decided here.

use super::demand::{Request, resolved};
use super::fit::{SlotRole, serves};
use super::{Cluster, LevelView};
use crate::ledger::Level;
use proto::complex::Complex;
use proto::request::ResourceRequest;

/// A request cannot be used for a selection: the complex does not know its resource, or its value
/// is not one of the resource's type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resource \"{name}\" is unknown, or the value for it is not of its type")]
pub struct UnusableRequest {
    /// The resource as it was asked for.
    pub name: String,
}

/// Requests by which objects are selected.
///
/// # Errors
/// [`UnusableRequest`], for the first such request.
pub fn requests(complex: &Complex, requests: &[ResourceRequest]) -> Result<Vec<Request>, UnusableRequest> {
    let (known, unknown) = resolved(complex, requests);
    let first = unknown.into_iter().next();
    first.map_or(Ok(known), |name| Err(UnusableRequest { name }))
}

impl Cluster<'_> {
    /// Whether an object, with those above it, offers everything that is requested to one slot.
    ///
    /// Unlike for a job, a load value that does not count in this mode does not exist: 8.1.9
    /// selects no queue instance by `mem_free`.
    pub fn has(&self, level: &Level, requests: &[Request]) -> bool {
        let views = self.above(level);
        requests.iter().all(|request| self.has_one(&views, request))
    }

    fn has_one(&self, views: &[LevelView<'_, '_>], request: &Request) -> bool {
        if request.attribute.is_exclusive() {
            let mut defined = views
                .iter()
                .filter(|view| self.has_exclusive(view, &request.attribute))
                .peekable();
            return defined.peek().is_some()
                && defined.all(|view| self.excluded(view, request, SlotRole::Master).is_none());
        }
        let offers = views.iter().flat_map(|view| self.offers(view, &request.attribute));
        let mut known = offers.filter(|offer| offer.value.is_some()).peekable();
        known.peek().is_some() && known.all(|offer| serves(request, &offer))
    }
}
