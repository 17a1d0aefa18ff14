//! SPDY/3.1, which the API server speaks to a kubelet for `kubectl exec` and `kubectl port-forward`.
//!
//! The peer opens the streams. Like Kubernetes' own library, neither side limits the flow of a stream.

use std::{collections::BTreeMap, io, mem};

use flate2::{Decompress, FlushDecompress};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc::{Receiver, Sender, channel},
    task,
};

/// The types of frames that are read or sent, as their first words. That of a data frame is the number of its stream.
const CONTROL: u32 = 0x8000_0000;
const SYN_STREAM: u32 = 0x8003_0001;
const SYN_REPLY: u32 = 0x8003_0002;
const RST_STREAM: u32 = 0x8003_0003;
const PING: u32 = 0x8003_0006;
const GOAWAY: u32 = 0x8003_0007;
/// The flag of the last frame of a stream in one direction.
const FIN: u32 = 1;
/// The maximum number of data bytes in a sent frame.
const PART: usize = 32 << 10;
/// The number of frames, data or streams that wait for their reader. The sender waits for room, so a stream that nobody reads delays the
/// others of its connection.
const QUEUE: usize = 16;
/// The maximum size of a block of headers, unpacked.
const HEADERS_MAX: usize = 64 << 10;

/// The dictionary of packed headers: words, each after its length, and a text.
const WORDS: &str = "options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,accept-language,accept-ranges,age,allow,\
    authorization,cache-control,connection,content-base,content-encoding,content-language,content-length,content-location,content-md5,\
    content-range,content-type,date,etag,expect,expires,from,host,if-match,if-modified-since,if-none-match,if-range,if-unmodified-since,\
    last-modified,location,max-forwards,pragma,proxy-authenticate,proxy-authorization,range,referer,retry-after,server,te,trailer,\
    transfer-encoding,upgrade,user-agent,vary,via,warning,www-authenticate,method,get,status,200 OK,version,HTTP/1.1,url,public,set-cookie,\
    keep-alive,origin";
const TEXT: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative \
    Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 \
    Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, \
    GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivate\
    max-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
/// The beginning of the packed headers of one direction: of the peer with the checksum of the dictionary, and of this side without one.
const PEER_BEGINS: usize = 6;
const BEGINS: &[u8] = &[0x78, 0x01];
/// No headers, packed: a number in an uncompressed block, and an empty block, after which the reader has all of it.
const NO_HEADERS: &[u8] = &[0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// A stream that the peer has opened.
pub(crate) struct Stream {
    headers: BTreeMap<String, String>,
    /// The data from the peer, until it ends or resets the stream, or the connection is lost.
    pub(crate) input: Receiver<Vec<u8>>,
    pub(crate) output: Output,
}

/// The direction of a stream to the peer, until its end is sent.
pub(crate) struct Output {
    stream: u32,
    frames: Sender<Vec<u8>>,
}

/// The reading side of a connection.
struct Connection<R> {
    reader: R,
    frames: Sender<Vec<u8>>,
    opened: Sender<Stream>,
    inputs: BTreeMap<u32, Sender<Vec<u8>>>,
    unpacker: Decompress,
    has_streams: bool,
}

/// Upgrades a connection whose request was read, for one of the offered protocols. Returns the streams that the peer opens.
pub(crate) async fn upgrade<C>(mut client: C, protocol: &str) -> io::Result<Receiver<Stream>>
where
    C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let unpacker = unpacker()?;
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
         X-Stream-Protocol-Version: {protocol}\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await?;
    client.flush().await?;
    let (reader, mut writer) = tokio::io::split(client);
    let (frames, mut queue) = channel::<Vec<u8>>(QUEUE);
    let (opened, streams) = channel(QUEUE);
    // The streams notice the end of either task.
    task::spawn(async move {
        while let Some(frame) = queue.recv().await {
            writer.write_all(&frame).await?;
            writer.flush().await?;
        }
        writer.shutdown().await
    });
    let connection = Connection {
        reader,
        frames,
        opened,
        inputs: BTreeMap::new(),
        unpacker,
        has_streams: false,
    };
    task::spawn(connection.run());
    Ok(streams)
}

impl Stream {
    /// The value of a header with a lowercase name; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

impl Output {
    /// Sends data. Fails if the connection is lost.
    pub(crate) async fn send(&self, data: &[u8]) -> io::Result<()> {
        for part in data.chunks(PART) {
            put(&self.frames, frame(self.stream, 0, part)).await?;
        }
        Ok(())
    }

    /// Sends the end of this direction.
    pub(crate) async fn end(self) -> io::Result<()> {
        put(&self.frames, frame(self.stream, FIN, &[])).await
    }
}

impl<R: AsyncRead + Unpin> Connection<R> {
    /// Reads frames until the connection ends.
    async fn run(mut self) -> io::Result<()> {
        loop {
            let first = self.reader.read_u32().await?;
            let second = self.reader.read_u32().await?;
            let (flags, length) = (second >> 24, second & 0x00ff_ffff);
            let mut body = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            self.reader.read_exact(&mut body).await?;
            match first {
                SYN_STREAM => self.open(flags, &body).await?,
                RST_STREAM => drop(self.inputs.remove(&number(&body)?)),
                PING => put(&self.frames, frame(first, flags, &body)).await?,
                GOAWAY => return Ok(()),
                stream if stream & CONTROL == 0 => self.take(stream, flags, body).await,
                _ => {}
            }
        }
    }

    async fn open(&mut self, flags: u32, body: &[u8]) -> io::Result<()> {
        let stream = number(body)?;
        let had_streams = mem::replace(&mut self.has_streams, true);
        let begins = if had_streams { 0 } else { PEER_BEGINS };
        // Before the headers are the numbers of two streams, a priority and a slot.
        let packed = body.get(10 + begins..).unwrap_or_default();
        let mut headers = Vec::with_capacity(HEADERS_MAX);
        // A second call returns what the first kept back at the end of its window.
        for part in [packed, &[]] {
            self.unpacker
                .decompress_vec(part, &mut headers, FlushDecompress::Sync)?;
        }
        let mut rest = headers.get(4..).unwrap_or_default();
        let pairs = (0..number(&headers)?).map(|_| Ok((text(&mut rest)?, text(&mut rest)?)));
        let headers = pairs.collect::<io::Result<_>>()?;
        let begins = if had_streams { &[][..] } else { BEGINS };
        let reply = [&stream.to_be_bytes()[..], begins, NO_HEADERS].concat();
        put(&self.frames, frame(SYN_REPLY, 0, &reply)).await?;
        let (sender, input) = channel(QUEUE);
        if flags & FIN == 0 {
            self.inputs.insert(stream, sender);
        }
        let frames = self.frames.clone();
        let output = Output { stream, frames };
        let opened = Stream {
            headers,
            input,
            output,
        };
        match self.opened.send(opened).await {
            Ok(()) => Ok(()),
            // Nobody expects it.
            Err(opened) => opened.0.output.end().await,
        }
    }

    /// Passes data on, unless nobody reads them.
    async fn take(&mut self, stream: u32, flags: u32, data: Vec<u8>) {
        if let Some(input) = self.inputs.get(&stream) {
            let _ = input.send(data).await;
        }
        if flags & FIN != 0 {
            self.inputs.remove(&stream);
        }
    }
}

/// Sends a frame. Fails if the connection is lost.
async fn put(frames: &Sender<Vec<u8>>, frame: Vec<u8>) -> io::Result<()> {
    let sent = frames.send(frame).await;
    sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
}

/// A decompressor that has read the dictionary, as a block that is not compressed.
fn unpacker() -> io::Result<Decompress> {
    let mut dictionary = Vec::new();
    for word in WORDS.split(',') {
        let length = u32::try_from(word.len()).map_err(io::Error::other)?;
        dictionary.extend(length.to_be_bytes());
        dictionary.extend(word.bytes());
    }
    dictionary.extend(TEXT.bytes());
    let length = u16::try_from(dictionary.len()).map_err(io::Error::other)?;
    let lengths = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    let block = [&[0_u8][..], &lengths, &dictionary].concat();
    let mut unpacker = Decompress::new(false);
    let mut unpacked = Vec::with_capacity(HEADERS_MAX);
    unpacker.decompress_vec(&block, &mut unpacked, FlushDecompress::Sync)?;
    Ok(unpacker)
}

/// A frame with a first word, flags and a body of at most 16 MiB.
fn frame(first: u32, flags: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("it is short");
    let second = (flags << 24) | length;
    [&first.to_be_bytes()[..], &second.to_be_bytes(), body].concat()
}

/// The first four bytes as a number.
fn number(bytes: &[u8]) -> io::Result<u32> {
    let first = bytes.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
    Ok(u32::from_be_bytes(*first))
}

/// The text at the beginning, which follows its length, and is taken away.
fn text(rest: &mut &[u8]) -> io::Result<String> {
    let length = usize::try_from(number(rest)?).map_err(io::Error::other)?;
    let parts = rest[4..].split_at_checked(length);
    let (text, others) = parts.ok_or(io::ErrorKind::InvalidData)?;
    *rest = others;
    Ok(String::from_utf8_lossy(text).into_owned())
}
