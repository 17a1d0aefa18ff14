//! A cluster that a command reads at once, from the start of the process to its end. The API server answers in protobuf, as real ones do.

use std::{io, process::Command, time::Instant};

use decree_api::v1;
use tempfile::TempDir;
use tests::{
    binaries,
    protobuf::{field, number},
    table::{head, quantile_of},
};
use tokio::{io::BufReader, net::TcpStream};

use crate::{
    api_server::{cut, kubeconfig, listen, next, write},
    measured::print,
    objects::Shape,
    sizes::shape,
};

const COLUMNS: [&str; 5] = [
    "pods",
    "command",
    "until its end, median",
    "longest",
    "goal",
];
/// The clusters: the pods of each of their ReplicaSets, the command, and the goal in seconds.
const READS: [(usize, &str, f64); 2] = [
    (1_000, "simulate web-0 --replicas 1 -n default -o name", 1.0),
    (50_000, "get rs -A -o name", 5.0),
];
const PODS_OF_A_SET: usize = 25;
/// The size of a pod with two containers, volumes and managed fields.
const POD_BYTES: usize = 5_000;
const ROUNDS: usize = 5;

/// Prints the table.
pub(crate) async fn run() {
    head("A cluster read at once", &COLUMNS);
    for (pods, words, goal) in READS {
        let shape = shape(pods / PODS_OF_A_SET, PODS_OF_A_SET);
        let address = listen(move |stream| serve(stream, shape)).await;
        let folder = TempDir::new().expect("there is room");
        let config = folder.path().join("config");
        std::fs::write(&config, kubeconfig(&address)).expect("there is room");
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let mut command = Command::new(binaries::folder().join("decree"));
            command
                .args(words.split(' '))
                .arg("--kubeconfig")
                .arg(&config);
            let start = Instant::now();
            let output = command.output().expect("it can be started");
            times.push(start.elapsed().as_secs_f64());
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && !output.stdout.is_empty(),
                "{said}"
            );
        }
        let [median, longest] = [0.5, 1.0].map(|share| quantile_of(&mut times, share));
        print(&[
            &shape.total().to_string(),
            words,
            &format!("{median:.2} s"),
            &format!("{longest:.2} s"),
            &format!("{goal} s"),
        ]);
    }
}

async fn serve(stream: TcpStream, shape: Shape) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let Some((_, target)) = next(&mut stream).await? else {
            return Ok(());
        };
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let (code, body) = match path.rsplit('/').next() {
            Some("pods") => {
                let pod = |at| pod(shape.listed(at));
                (200, page("PodList", query, shape.total(), pod))
            }
            Some("replicasets") => {
                let set = |at| replica_set(shape, at);
                (200, page("ReplicaSetList", query, shape.replica_sets, set))
            }
            _ => (404, Vec::new()),
        };
        let kind = "application/vnd.kubernetes.protobuf";
        write(&mut stream, code, kind, &body).await?;
    }
}

/// The document of a page; its token is the number of its first object.
fn page(kind: &str, query: &str, total: usize, object: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let (numbers, next) = cut(query, total);
    let mut list = field(1, [field(2, "100"), field(3, next)].concat());
    numbers.for_each(|at| list.extend(field(2, object(at))));
    let unknown = [field(1, field(2, kind)), field(2, list)].concat();
    [b"k8s\0".to_vec(), unknown].concat()
}

fn metadata(name: &str, uid: &str, app: &str) -> Vec<u8> {
    let label = [field(1, "app"), field(2, app)].concat();
    let created = number(1, 1_777_636_800);
    [
        field(1, name),
        field(3, "default"),
        field(5, uid),
        field(6, "50"),
        number(7, 1),
        field(8, created),
        field(11, label),
    ]
    .concat()
}

fn replica_set(shape: Shape, at: usize) -> Vec<u8> {
    let set = shape.replica_set(at);
    let label = [field(1, "app"), field(2, &set.name)].concat();
    let template = field(1, field(11, &label));
    let spec = [
        number(1, set.replicas.unwrap_or_default().into()),
        field(2, field(1, label)),
        field(3, template),
    ];
    let status = set.status.unwrap_or_default();
    let status = [
        number(1, status.replicas.into()),
        number(2, status.fully_labeled_replicas.into()),
        number(3, 1),
        number(4, status.ready_replicas.into()),
        number(5, status.available_replicas.into()),
    ];
    [
        field(1, metadata(&set.name, &set.uid, &set.name)),
        field(2, spec.concat()),
        field(3, status.concat()),
    ]
    .concat()
}

/// A pod, padded by its managed fields.
fn pod(pod: v1::Pod) -> Vec<u8> {
    let controller = pod.controller.unwrap_or_default();
    let owner = [
        field(1, "ReplicaSet"),
        field(3, &controller.name),
        field(4, controller.uid),
        field(5, "apps/v1"),
        number(6, 1),
        number(7, 1),
    ];
    let ready = [
        field(1, "Ready"),
        field(2, "True"),
        field(4, number(1, 1_777_636_800)),
    ];
    let rest = [
        field(2, field(10, &pod.node_name)),
        field(3, [field(1, "Running"), field(2, ready.concat())].concat()),
    ];
    let mut metadata = metadata(&pod.name, &pod.uid, &controller.name);
    metadata.extend(field(13, owner.concat()));
    let missing = POD_BYTES.saturating_sub(metadata.len() + rest.concat().len());
    metadata.extend(field(17, field(7, field(1, vec![b'f'; missing]))));
    [field(1, metadata), rest.concat()].concat()
}
