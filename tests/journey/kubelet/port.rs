//! The port of a kubelet, from which the API server reads logs, and to which it forwards `kubectl exec` and `kubectl port-forward`.

use std::{collections::BTreeMap, fs, io, sync::Arc, thread};

use rustls::DEFAULT_VERSIONS;
use serde_json::{Value, json};
use tests::pki::Request;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::{mpsc::Receiver, oneshot},
    task,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    network::Network,
    shared::{Place, Shared},
    spdy::{self, Output, Stream},
};

/// The protocols of the streams of `kubectl exec` and `kubectl port-forward`.
const EXEC: &str = "v4.channel.k8s.io";
const FORWARD: &str = "portforward.k8s.io";

type Client = BufReader<TlsStream<TcpStream>>;

/// A request: a path, and its parameters.
struct Asked {
    path: Vec<String>,
    parameters: Vec<(String, String)>,
}

/// Opens a port for all nodes, and returns its number.
pub(crate) async fn open(shared: &Arc<Shared>) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let pair = Request::server().self_signed();
    let config = pair.server_config(DEFAULT_VERSIONS);
    let tls = TlsAcceptor::from(Arc::new(config));
    let shared = Arc::clone(shared);
    task::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            // The API server reports a lost answer.
            task::spawn(serve(client, tls.clone(), Arc::clone(&shared)));
        }
    });
    Ok(port)
}

/// Answers the request on one connection, which then ends.
async fn serve(client: TcpStream, tls: TlsAcceptor, shared: Arc<Shared>) -> io::Result<()> {
    let mut client = BufReader::new(tls.accept(client).await?);
    let asked = read(&mut client).await?;
    let [verb, namespace, pod, container @ ..] = &asked.path[..] else {
        return answer(&mut client, "404 Not Found", b"no such page").await;
    };
    let mut places = shared.places().into_iter();
    let place = places.find(|it| {
        let is_its = container.is_empty() || container == [it.container.as_str()];
        (&it.namespace, &it.pod) == (namespace, pod) && is_its
    });
    let Some(place) = place else {
        return answer(&mut client, "404 Not Found", b"no such container").await;
    };
    match verb.as_str() {
        "containerLogs" => answer(&mut client, "200 OK", &fs::read(&place.plan.log)?).await,
        "exec" => exec(spdy::upgrade(client, EXEC).await?, place, &asked).await,
        "portForward" => {
            forward(spdy::upgrade(client, FORWARD).await?, &place.network).await;
            Ok(())
        }
        _ => answer(&mut client, "405 Method Not Allowed", b"not this way").await,
    }
}

/// Forwards each pair of streams to its port in the network of a pod.
async fn forward(mut streams: Receiver<Stream>, network: &Arc<Network>) {
    // The peer opens the stream of errors of a connection before that of data.
    let mut errors = BTreeMap::new();
    while let Some(stream) = streams.recv().await {
        let connection = stream.header("requestid").to_owned();
        if stream.header("streamtype") == "error" {
            errors.insert(connection, stream.output);
        } else if let Some(errors) = errors.remove(&connection) {
            task::spawn(carry(stream, errors, Arc::clone(network)));
        }
    }
}

/// Forwards one connection until the pod ends it. Both of its streams end then.
async fn carry(stream: Stream, errors: Output, network: Arc<Network>) -> io::Result<()> {
    let port = stream.header("port").parse().unwrap_or_default();
    let connect = move || {
        let pod = network.connect(port)?;
        pod.set_nonblocking(true)?;
        TcpStream::from_std(pod)
    };
    let Stream { input, output, .. } = stream;
    let carried = match task::spawn_blocking(connect).await? {
        Ok(pod) => copy(pod, input, &output).await,
        Err(error) => errors.send(error.to_string().as_bytes()).await,
    };
    output.end().await?;
    errors.end().await?;
    carried
}

async fn copy(pod: TcpStream, mut input: Receiver<Vec<u8>>, output: &Output) -> io::Result<()> {
    let (mut from, mut to) = pod.into_split();
    task::spawn(async move {
        while let Some(data) = input.recv().await {
            to.write_all(&data).await?;
        }
        to.shutdown().await
    });
    let mut data = vec![0; 32 << 10];
    loop {
        match from.read(&mut data).await? {
            0 => return Ok(()),
            length => output.send(&data[..length]).await?,
        }
    }
}

/// Runs the requested command once all of its streams are open, and sends its output.
async fn exec(mut streams: Receiver<Stream>, place: Place, asked: &Asked) -> io::Result<()> {
    let command = asked.parameters.iter();
    let command = command.filter(|(name, _)| name == "command");
    let command: Vec<_> = command.map(|(_, word)| word.clone()).collect();
    let mut outputs = BTreeMap::new();
    while !outputs.contains_key("stderr") {
        let stream = streams.recv().await.ok_or(io::ErrorKind::UnexpectedEof)?;
        outputs.insert(stream.header("streamtype").to_owned(), stream.output);
    }
    let (tell, told) = oneshot::channel();
    // A separate thread, for which nobody waits at the end of a test.
    thread::spawn(move || {
        tell.send(match place.pid {
            Some(pid) => place.plan.exec(pid, &command),
            None => Err(io::Error::other("the container does not run")),
        })
    });
    let (stdout, stderr, result) = match told.await.map_err(io::Error::other)? {
        Ok(done) => (done.stdout, done.stderr, result(done.status.code())),
        Err(error) => {
            let result = json!({"status": "Failure", "message": error.to_string()});
            (Vec::new(), Vec::new(), result)
        }
    };
    let result = result.to_string().into_bytes();
    for (name, data) in [("stdout", stdout), ("stderr", stderr), ("error", result)] {
        if let Some(output) = outputs.remove(name) {
            output.send(&data).await?;
            output.end().await?;
        }
    }
    Ok(())
}

/// The end of a command in the words of the API.
fn result(code: Option<i32>) -> Value {
    match code {
        Some(0) => json!({"metadata": {}, "status": "Success"}),
        other => {
            let code = other.unwrap_or(137).to_string();
            json!({
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": format!("command terminated with non-zero exit code: exit status {code}"),
                "details": {"causes": [{"reason": "ExitCode", "message": code}]},
            })
        }
    }
}

async fn read(client: &mut Client) -> io::Result<Asked> {
    let mut line = String::new();
    client.read_line(&mut line).await?;
    let target = line.split(' ').nth(1).ok_or(io::ErrorKind::InvalidData)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.split('/').skip(1).map(plain).collect();
    let parameters = query.split('&').filter_map(|it| it.split_once('='));
    let parameters = parameters.map(|(name, value)| (plain(name), plain(value)));
    let parameters = parameters.collect();
    // No header matters here.
    while !line.trim_end().is_empty() {
        line.clear();
        client.read_line(&mut line).await?;
    }
    Ok(Asked { path, parameters })
}

/// Decodes a URL.
fn plain(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => plain.push(b' '),
            b'%' => {
                let digits = [bytes.next(), bytes.next()].map(|it| char::from(it.unwrap_or(b'0')));
                let digits = String::from_iter(digits);
                plain.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
            }
            other => plain.push(other),
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

async fn answer(client: &mut Client, status: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(body).await?;
    client.shutdown().await
}
