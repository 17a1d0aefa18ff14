//! The port of a kubelet, from which the API server reads logs, and to which it forwards `kubectl exec`.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde_json::{Value, json};
use tests::pki::Request;

use super::shared::{Place, Shared};

/// The text of RFC 6455 that a server appends to the key of its client.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const PROTOCOL: &str = "v5.channel.k8s.io";
/// The channels of that protocol.
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const RESULT: u8 = 3;
/// The opcodes of a message and of the end, each as the last frame of its message.
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
/// The timeout of the end of a conversation.
const FAREWELL: Duration = Duration::from_secs(10);

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// A request: a path, its parameters, and the key of a WebSocket.
struct Asked {
    path: Vec<String>,
    parameters: Vec<(String, String)>,
    key: Option<String>,
}

/// Opens a port for all nodes, and returns its number. The port has separate threads.
pub(crate) fn open(shared: &Arc<Shared>) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let pair = Request::server().self_signed();
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(io::Error::other)?.with_no_client_auth();
    let chain = CertificateDer::pem_slice_iter(pair.cert.as_bytes()).flatten();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(io::Error::other)?;
    let config = builder.with_single_cert(chain.collect(), key);
    let config = Arc::new(config.map_err(io::Error::other)?);
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (config, shared) = (Arc::clone(&config), Arc::clone(&shared));
            // The API server reports a lost answer.
            thread::spawn(move || serve(client, config, &shared));
        }
    });
    Ok(port)
}

/// Answers the request on one connection, which then ends.
fn serve(client: TcpStream, config: Arc<ServerConfig>, shared: &Shared) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, client));
    let asked = read(&mut stream)?;
    let [verb, namespace, pod, container] = &asked.path[..] else {
        return answer(stream.get_mut(), "404 Not Found", b"no such page");
    };
    let mut places = shared.places().into_iter();
    let place =
        places.find(|it| (&it.namespace, &it.pod, &it.container) == (namespace, pod, container));
    let Some(place) = place else {
        return answer(stream.get_mut(), "404 Not Found", b"no such container");
    };
    match (verb.as_str(), &asked.key) {
        ("containerLogs", _) => answer(stream.get_mut(), "200 OK", &fs::read(&place.plan.log)?),
        ("exec", Some(key)) => {
            let stream = stream.get_mut();
            accept(stream, key)?;
            exec(stream, &place, &asked)?;
            part(stream)
        }
        _ => answer(stream.get_mut(), "405 Method Not Allowed", b"not this way"),
    }
}

/// Runs the requested command, and sends its output.
fn exec(stream: &mut Stream, place: &Place, asked: &Asked) -> io::Result<()> {
    let command = asked
        .parameters
        .iter()
        .filter(|(name, _)| name == "command");
    let command: Vec<_> = command.map(|(_, word)| word.clone()).collect();
    let done = match place.pid {
        Some(pid) => place.plan.exec(pid, &command),
        None => Err(io::Error::other("the container does not run")),
    };
    let result = match done {
        Ok(output) => {
            send(stream, STDOUT, &output.stdout)?;
            send(stream, STDERR, &output.stderr)?;
            result(output.status.code())
        }
        Err(error) => json!({"status": "Failure", "message": error.to_string()}),
    };
    send(stream, RESULT, result.to_string().as_bytes())
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

fn read(stream: &mut impl BufRead) -> io::Result<Asked> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let target = line.split(' ').nth(1).ok_or(io::ErrorKind::InvalidData)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.split('/').skip(1).map(plain).collect();
    let parameters = query.split('&').filter_map(|it| it.split_once('='));
    let parameters = parameters.map(|(name, value)| (plain(name), plain(value)));
    let parameters = parameters.collect();
    let mut key = None;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("sec-websocket-key") {
            key = Some(value.trim().to_owned());
        }
    }
    Ok(Asked {
        path,
        parameters,
        key,
    })
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

fn answer(stream: &mut Stream, status: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// Turns the connection into a WebSocket.
fn accept(stream: &mut Stream, key: &str) -> io::Result<()> {
    let accepted = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
    let accepted = STANDARD.encode(accepted);
    write!(
        stream,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accepted}\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n"
    )?;
    stream.flush()
}

/// Sends a message on a channel.
fn send(stream: &mut Stream, channel: u8, message: &[u8]) -> io::Result<()> {
    for part in message.chunks(32 << 10) {
        let length = part.len() + 1;
        let mut frame = vec![BINARY];
        match u8::try_from(length) {
            Ok(short) if short < 126 => frame.push(short),
            _ => {
                frame.push(126);
                frame.extend(
                    u16::try_from(length)
                        .map_err(io::Error::other)?
                        .to_be_bytes(),
                );
            }
        }
        frame.push(channel);
        frame.extend(part);
        stream.write_all(&frame)?;
    }
    stream.flush()
}

/// Ends the conversation, and reads the rest of the other side's messages, so that they do not cut off unread data.
fn part(stream: &mut Stream) -> io::Result<()> {
    // Normal closure.
    stream.write_all(&[CLOSE, 2, 0x03, 0xe8])?;
    stream.flush()?;
    stream.sock.set_read_timeout(Some(FAREWELL))?;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).is_ok_and(|read| read > 0) {}
    Ok(())
}
