//! Queries over many ReplicaSets, for questions about the whole cluster.

use std::collections::BTreeSet;

use super::{
    Index, counting,
    nodes::NodeId,
    set::{Set, SetId},
};

pub(crate) fn replica_of(index: &Index, namespace: &str, name: &str) -> Option<SetId> {
    let (_, pod) = index.pod_named(namespace, name)?;
    counting::set_of(index, pod).filter(|_| pod.counted.active)
}

/// Returns the ReplicaSets of a namespace, in the order of their names.
pub(crate) fn sets_in<'a>(
    index: &'a Index,
    namespace: &str,
) -> impl Iterator<Item = (SetId, &'a Set)> {
    let ids = index.namespaces.get(namespace).map(|it| it.sets.values());
    let ids = ids.into_iter().flatten();
    ids.filter_map(|id| Some((*id, index.set(*id)?)))
}

/// Returns the ReplicaSets after a name with an active pod on a node, in the order of namespace and name.
pub(crate) fn sets_on<'a>(
    index: &'a Index,
    node: &str,
    after: (&'a str, &'a str),
) -> impl Iterator<Item = SetId> + 'a {
    let node = index.nodes.find(node);
    let node = node.into_iter();
    node.flat_map(move |node| {
        let namespaces = index.namespaces.iter().map(|(name, _)| name);
        let namespaces = namespaces.filter(move |namespace| *namespace >= after.0);
        namespaces.flat_map(move |namespace| sets_in_on(index, namespace, node))
    })
    .filter(move |(namespace, name, _)| (*namespace, *name) > after)
    .map(|(.., id)| id)
}

/// Returns the ReplicaSets of a namespace with an active pod on a node, in the order of their names.
fn sets_in_on<'a>(
    index: &'a Index,
    namespace: &'a str,
    node: NodeId,
) -> impl Iterator<Item = (&'a str, &'a str, SetId)> {
    let groups = index.groups.of_namespace(namespace);
    let groups = groups.filter(move |group| group.active_by_node.contains_key(&Some(node)));
    let labels = groups.filter_map(|group| group.labels.as_ref());
    let ids = labels.flat_map(|labels| index.selecting(namespace, labels));
    let ids: BTreeSet<_> = ids.collect();
    let has_pod = move |id: SetId| {
        let mut pods = index.active_pods(id);
        pods.any(|(_, pod)| pod.node == Some(node))
    };
    let sets = ids.into_iter().filter(move |id| has_pod(*id));
    let sets = sets.filter_map(|id| Some((&*index.set(id)?.object.key.name, id)));
    let sets: BTreeSet<_> = sets.collect();
    sets.into_iter()
        .map(move |(name, id)| (namespace, name, id))
}
