//! The notices about sessions whose view of their cluster is stale, or that did not answer.

use std::time::Duration;

use decree_api::v1;

use crate::{
    age,
    exit::{Exit, Failure},
    page::Io,
};

/// Names the stale views of an answer on stderr. Returns the exit code: [`Exit::Unreachable`] if the answer lacks what a session knows.
pub(crate) fn notice<'a>(
    views: impl IntoIterator<Item = &'a v1::StaleView>,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    for view in views {
        io.notice(&text(view))?;
        if view.missing {
            exit = Exit::Unreachable;
        }
    }
    Ok(exit)
}

/// The failure for something that an answer lacks, perhaps because a session did not answer.
pub(crate) fn missing(views: &[v1::StaleView]) -> Option<Failure> {
    let view = views.iter().find(|view| view.missing)?;
    Some(Failure::new(Exit::Unreachable, text(view)))
}

/// Adds the stale views of another page. A view is missing if it is on one page.
pub(crate) fn add(views: &mut Vec<v1::StaleView>, others: Vec<v1::StaleView>) {
    for other in others {
        match views.iter_mut().find(|view| is_same(view, &other)) {
            Some(known) => known.missing |= other.missing,
            None => views.push(other),
        }
    }
}

/// Whether two answers name the view of the same cluster and shard.
pub(crate) fn is_same(one: &v1::StaleView, other: &v1::StaleView) -> bool {
    one.cluster_uid == other.cluster_uid && one.shard == other.shard
}

fn text(view: &v1::StaleView) -> String {
    let cluster = &view.cluster;
    let shard = match view.shard.as_str() {
        "" => String::new(),
        shard => format!(", shard {shard},"),
    };
    let age = view.age.and_then(|age| Duration::try_from(age).ok());
    let heard = age::human(age.unwrap_or_default());
    let heard = format!("the server last heard from its agent {heard} ago");
    if view.missing {
        format!("cluster {cluster}{shard} is missing: its session does not answer; {heard}")
    } else {
        format!("cluster {cluster}{shard} may have changed: {heard}")
    }
}
