import java.net.ConnectException;
import java.net.SocketAddress;
import java.nio.channels.SocketChannel;
@tcp import java.net.InetSocketAddress;
@tcp import java.net.StandardProtocolFamily;
@unix @receiver import java.net.StandardProtocolFamily;
@unix @receiver import java.io.File;
@tcp import java.net.StandardSocketOptions;
@unix import java.net.UnixDomainSocketAddress;
@unix import java.nio.file.Files;
@unix import java.nio.file.Path;
@unix import java.nio.file.attribute.BasicFileAttributes;
@receiver import java.nio.channels.ServerSocketChannel;
@manysenders @receiver import java.util.concurrent.SynchronousQueue;
    static SocketAddress address(String name) {
@unix         if (name.getBytes().length > 106) {
@unix             throw new IllegalArgumentException("the name of a socket has at most 106 bytes in Java");
@unix         }
@unix         return UnixDomainSocketAddress.of(name);
@tcp         int port = Integer.parseInt(name);
@tcp         if (port < 1) {
@tcp             throw new IllegalArgumentException("NAME is a port, a number from 1 to 65535");
@tcp         }
@tcp         return new InetSocketAddress("127.0.0.1", port);
    }

@unix     static boolean isSocket(String name) throws IOException {
@unix         return Files.readAttributes(Path.of(name), BasicFileAttributes.class).isOther();
@unix     }
@unix 
    static SocketChannel connect(String name) throws IOException {
@unix         return SocketChannel.open(address(name));
@tcp         SocketChannel channel = SocketChannel.open(StandardProtocolFamily.INET);
@tcp         channel.setOption(StandardSocketOptions.TCP_NODELAY, true); // a message is not held back until the last one is acknowledged
@tcp         try {
@tcp             channel.connect(address(name));
@tcp         } catch (IOException error) {
@tcp             channel.close();
@tcp             throw error;
@tcp         }
@tcp         if (channel.getLocalAddress().equals(channel.getRemoteAddress())) {
@tcp             channel.close();
@tcp             throw new ConnectException("Connection refused"); // it has met itself
@tcp         }
@tcp         return channel;
    }

    /** False: the other end has gone. A message that is cut off by a death is dropped. */
    static boolean readWhole(SocketChannel channel, ByteBuffer message) {
        message.clear();
        try {
            while (message.hasRemaining()) {
                if (channel.read(message) < 0) {
                    return false;
                }
            }
        } catch (IOException error) {
            return false;
        }
        message.clear();
        return true;
    }
@sender     static class Link {
@sender         final String name;
@sender         SocketChannel channel;
@sender 
@sender         Link(String name) throws IOException {
@sender             this.name = name;
@sender             open();
@sender         }
@sender 
@sender         /** Waits for the receiver. */
@sender         void open() throws IOException {
@sender             while (true) {
@unix @sender                 boolean wasThere = Files.exists(Path.of(name));
@sender                 try {
@sender                     channel = connect(name);
@sender                     return;
@sender                 } catch (IOException error) {
@unix @sender                     if (Files.exists(Path.of(name)) && !isSocket(name)) {
@unix @sender                         throw new IOException("there is another file");
@unix @sender                     }
@unix @sender                     if (!Files.exists(Path.of(name).toAbsolutePath().getParent())) {
@unix @sender                         throw error; // no end makes a folder
@unix @sender                     }
@sender                     // Not by its text, which depends on the language of the user.
@sender                     boolean isRefused = error instanceof ConnectException;
@unix @sender                     if (!isRefused && wasThere && Files.exists(Path.of(name))) { // else it was made or removed in this moment
@tcp @sender                     if (!isRefused && !String.valueOf(error.getMessage()).contains("reset")) {
@sender                         throw error;
@sender                     }
@sender                 }
@sender                 LockSupport.parkNanos(10_000_000);
@sender             }
@sender         }
@sender 
@sender         void openAgain() throws IOException {
@sender             System.err.println("the receiver has gone: waiting for another");
@sender             channel.close();
@sender             open();
@sender         }
@sender 
@sender         /** The receiver sends nothing now: what there is to read is its end. */
@sender         void reopenIfGone() throws IOException {
@sender             channel.configureBlocking(false);
@sender             boolean isThere = false;
@sender             try {
@sender                 isThere = channel.read(ByteBuffer.allocate(1)) == 0;
@sender             } catch (IOException error) {
@sender                 // it was reset
@sender             }
@sender             channel.configureBlocking(true);
@sender             if (!isThere) {
@sender                 openAgain();
@sender             }
@sender         }
@sender 
@sender         /** A message goes whole to one receiver. */
@sender         void send(ByteBuffer message) throws IOException {
@sender             while (true) {
@sender                 try {
@sender                     for (message.clear(); message.hasRemaining();) {
@sender                         channel.write(message);
@sender                     }
@sender                     message.clear();
@sender                     return;
@sender                 } catch (IOException error) {
@sender                     openAgain();
@sender                 }
@sender             }
@sender         }
@sender 
@reply @sender         /** False: the server has gone. */
@reply @sender         boolean receiveReply(ByteBuffer reply) throws IOException {
@reply @sender             boolean came = readWhole(channel, reply);
@reply @sender             if (!came) {
@reply @sender                 openAgain();
@reply @sender             }
@reply @sender             return came;
@reply @sender         }
@reply @sender 
@sender         /** The receiver answers the end mark by one byte; one that died before that has a successor. */
@sender         void finish(ByteBuffer mark) throws IOException {
@sender             ByteBuffer answer = ByteBuffer.allocate(1);
@sender             for (send(mark); !readWhole(channel, answer); send(mark)) {
@sender                 openAgain();
@sender             }
@sender         }
@sender     }
@receiver     static class Link {
@receiver         final String name;
@receiver         final ServerSocketChannel listener;
@onesender @receiver         SocketChannel channel;
@onesender @receiver         /** The connection has sent a message: others only asked whether a receiver is there. */
@onesender @receiver         boolean isSender;
@manysenders @receiver         /** Each thread of a connection waits until its message is taken. */
@manysenders @receiver         final SynchronousQueue<Connection> arrivals = new SynchronousQueue<>();
@manysenders @receiver         Connection current;
@receiver 
@receiver         Link(String name) throws IOException {
@receiver             this.name = name;
@tcp @receiver             listener = ServerSocketChannel.open(StandardProtocolFamily.INET).bind(address(name));
@unix @receiver             if (Files.exists(Path.of(name))) {
@unix @receiver                 if (!isSocket(name)) {
@unix @receiver                     throw new IOException("there is another file");
@unix @receiver                 }
@unix @receiver                 boolean isAlive = true;
@unix @receiver                 try {
@unix @receiver                     connect(name).close();
@unix @receiver                 } catch (ConnectException error) {
@unix @receiver                     isAlive = false;
@unix @receiver                 }
@unix @receiver                 if (isAlive) {
@unix @receiver                     throw new IOException("another receiver is there");
@unix @receiver                 }
@unix @receiver                 Files.deleteIfExists(Path.of(name));
@unix @receiver             }
@unix @receiver             listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(address(name));
@unix @receiver             Runtime.getRuntime().addShutdownHook(new Thread(() -> new File(name).delete())); // also at SIGTERM
@manysenders @receiver             Thread acceptor = new Thread(this::accept);
@manysenders @receiver             acceptor.setDaemon(true);
@manysenders @receiver             acceptor.start();
@receiver         }
@receiver 
@onesender @receiver         void receive(ByteBuffer message) throws IOException {
@onesender @receiver             while (true) {
@onesender @receiver                 if (channel == null) {
@onesender @receiver                     channel = listener.accept();
@onesender @tcp @receiver                     channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
@onesender @receiver                 }
@onesender @receiver                 if (readWhole(channel, message)) {
@onesender @receiver                     isSender = true;
@onesender @receiver                     return;
@onesender @receiver                 }
@onesender @receiver                 if (isSender) {
@onesender @receiver                     System.err.println("the sender has gone: waiting for another");
@onesender @receiver                 }
@onesender @receiver                 channel.close();
@onesender @receiver                 channel = null;
@onesender @receiver                 isSender = false;
@onesender @receiver             }
@onesender @receiver         }
@onesender @receiver 
@reply @receiver         /** A client that died gets no reply. */
@reply @receiver         void sendReply(ByteBuffer reply) {
@reply @receiver             try {
@reply @receiver                 for (reply.clear(); reply.hasRemaining();) {
@reply @receiver                     channel.write(reply);
@reply @receiver                 }
@reply @receiver             } catch (IOException error) {
@reply @receiver                 // receive() will meet the end of its connection
@reply @receiver             }
@reply @receiver         }
@reply @receiver 
@manysenders @receiver         void accept() {
@manysenders @receiver             try {
@manysenders @receiver                 while (true) {
@manysenders @receiver                     Thread reader = new Connection(listener.accept(), this);
@manysenders @receiver                     reader.setDaemon(true);
@manysenders @receiver                     reader.start();
@manysenders @receiver                 }
@manysenders @receiver             } catch (IOException error) {
@manysenders @receiver                 // the listener is closed
@manysenders @receiver             }
@manysenders @receiver         }
@manysenders @receiver 
@manysenders @receiver         void receive(ByteBuffer message) throws InterruptedException {
@manysenders @receiver             if (current != null) {
@manysenders @receiver                 current.taken.put(true);
@manysenders @receiver             }
@manysenders @receiver             current = arrivals.take();
@manysenders @receiver             message.clear();
@manysenders @receiver             message.put(current.message);
@manysenders @receiver             current.message.clear();
@manysenders @receiver         }
@manysenders @receiver 
@receiver         /** Tells the sender that its end mark was taken. */
@receiver         void end() {
@manysenders @receiver             current.isEnded = true;
@receiver             try {
@onesender @receiver                 channel.write(ByteBuffer.wrap(new byte[] {10}));
@manysenders @receiver                 current.channel.write(ByteBuffer.wrap(new byte[] {10}));
@receiver             } catch (IOException error) {
@receiver                 // it has died: its end mark was taken all the same
@receiver             }
@receiver         }
@receiver 
@receiver         void finish() throws IOException {
@unix @receiver             Files.deleteIfExists(Path.of(name));
@receiver             listener.close();
@receiver         }
@receiver     }
@manysenders @receiver 
@manysenders @receiver     /** Reads the messages of one sender. */
@manysenders @receiver     static class Connection extends Thread {
@manysenders @receiver         final SocketChannel channel;
@manysenders @receiver         final Link link;
@manysenders @receiver         final ByteBuffer message = ByteBuffer.allocateDirect(BYTES);
@manysenders @receiver         volatile boolean isEnded;
@manysenders @receiver         final SynchronousQueue<Boolean> taken = new SynchronousQueue<>();
@manysenders @receiver 
@manysenders @receiver         Connection(SocketChannel channel, Link link) {
@manysenders @receiver             this.channel = channel;
@manysenders @receiver             this.link = link;
@manysenders @receiver         }
@manysenders @receiver 
@manysenders @receiver         @Override
@manysenders @receiver         public void run() {
@manysenders @receiver             try {
@manysenders @receiver                 boolean isSender = false;
@manysenders @receiver                 while (readWhole(channel, message)) {
@manysenders @receiver                     isSender = true;
@manysenders @receiver                     link.arrivals.put(this);
@manysenders @receiver                     taken.take();
@manysenders @receiver                 }
@manysenders @receiver                 if (isSender && !isEnded) {
@manysenders @receiver                     System.err.println("the sender has gone: waiting for another");
@manysenders @receiver                 }
@manysenders @receiver                 channel.close();
@manysenders @receiver             } catch (IOException | InterruptedException error) {
@manysenders @receiver                 System.err.println(error.getMessage());
@manysenders @receiver             }
@manysenders @receiver         }
@manysenders @receiver     }
