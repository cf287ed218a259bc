//! A relay before a server, which answers some commands in its place.
//!
//! It reads the wire protocol as far as that needs it: the messages of drivers that were told of no
//! compression.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mongodb::bson::{Bson, Document};
use mongodb::options::{ClientOptions, ServerAddress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A relay that ends with the test's runtime.
pub struct Relay {
    /// Names the server through the relay, and that server alone.
    pub uri: String,
    answered: Arc<AtomicU32>,
}

/// What to answer a command with; nothing for one that the server shall answer.
type Answer = Arc<dyn Fn(&Document) -> Option<Document> + Send + Sync>;

impl Relay {
    pub async fn before(
        server: &str,
        answer: impl Fn(&Document) -> Option<Document> + Send + Sync + 'static,
    ) -> Self {
        let options = ClientOptions::parse(server).await.expect("a usable connection string");
        let Some(ServerAddress::Tcp { host, port }) = options.hosts.first() else {
            panic!("a server on loopback")
        };
        let server = format!("{host}:{}", port.expect("a port")).parse().expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let answered = Arc::<AtomicU32>::default();
        tokio::spawn(listen(listener, server, Arc::new(answer), Arc::clone(&answered)));
        Self { uri: format!("mongodb://127.0.0.1:{port}/?directConnection=true"), answered }
    }

    /// How many commands have not reached the server.
    pub fn answered(&self) -> u32 {
        self.answered.load(Ordering::SeqCst)
    }
}

async fn listen(listener: TcpListener, server: SocketAddr, answer: Answer, count: Arc<AtomicU32>) {
    while let Ok((near, _)) = listener.accept().await {
        let Ok(far) = TcpStream::connect(server).await else { return };
        tokio::spawn(pass(near, far, Arc::clone(&answer), Arc::clone(&count)));
    }
}

/// Passes requests and replies on, until either side has closed. A connection carries one request at a
/// time.
async fn pass(
    mut near: TcpStream,
    mut far: TcpStream,
    answer: Answer,
    count: Arc<AtomicU32>,
) -> io::Result<()> {
    loop {
        let request = message(&mut near).await?;
        if let Some(answer) = command(&request).and_then(|command| answer(&command)) {
            count.fetch_add(1, Ordering::SeqCst);
            near.write_all(&reply(&request, &answer)).await?;
            continue;
        }
        far.write_all(&request).await?;
        loop {
            let reply = message(&mut far).await?;
            near.write_all(&reply).await?;
            if !has_more_to_come(&reply) {
                break;
            }
        }
    }
}

/// One message of the wire protocol, which begins with its length.
async fn message(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut message = vec![0; HEADER];
    socket.read_exact(&mut message).await?;
    let length = number(&message, 0);
    message.resize(usize::try_from(length).expect("a length"), 0);
    socket.read_exact(&mut message[HEADER..]).await?;
    Ok(message)
}

/// What a request of the modern kind asks for; its lists may be sent beside the document.
fn command(request: &[u8]) -> Option<Document> {
    if number(request, OPCODE) != OP_MSG {
        return None;
    }
    let (mut command, mut lists) = (Document::new(), Document::new());
    let mut rest = &request[FLAGS + 4..];
    while let Some((kind, section)) = rest.split_first() {
        let (section, after) = section.split_at(usize::try_from(number(section, 0)).ok()?);
        rest = after;
        if *kind == 0 {
            command = Document::from_reader(section).ok()?;
            continue;
        }
        let end = section[4..].iter().position(|byte| *byte == 0)? + 4;
        let name = String::from_utf8_lossy(&section[4..end]).into_owned();
        let mut documents = &section[end + 1..];
        let mut list = Vec::new();
        while !documents.is_empty() {
            list.push(Bson::Document(Document::from_reader(&mut documents).ok()?));
        }
        lists.insert(name, list);
    }
    command.extend(lists);
    Some(command)
}

fn reply(request: &[u8], answer: &Document) -> Vec<u8> {
    let body = answer.to_vec().expect("BSON");
    let length = i32::try_from(FLAGS + 4 + 1 + body.len()).expect("a short message");
    let numbers = [length, 0, number(request, REQUEST_ID), OP_MSG, 0];
    let mut reply: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    reply.push(0);
    reply.extend(body);
    reply
}

/// A watch on the server's state is asked for once and answered many times.
fn has_more_to_come(reply: &[u8]) -> bool {
    number(reply, OPCODE) == OP_MSG && number(reply, FLAGS) & MORE_TO_COME != 0
}

fn number(message: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(message[at..at + 4].try_into().expect("four bytes"))
}

const HEADER: usize = 16;
const REQUEST_ID: usize = 4;
const OPCODE: usize = 12;
const FLAGS: usize = 16;
const OP_MSG: i32 = 2013;
const MORE_TO_COME: i32 = 2;
