@unread import java.io.FileInputStream;
@sender import java.io.UncheckedIOException;
@sender import java.util.concurrent.CompletableFuture;
@sender import java.util.concurrent.ExecutionException;
@sender import java.util.concurrent.TimeUnit;
@sender import java.util.concurrent.TimeoutException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
    /** Opens a FIFO. Both ends make it, so they can start in any order. open(2) waits for the other end. */
    static FileChannel open(String name, OpenOption... how) throws IOException {
        while (true) {
            if (!Files.exists(Path.of(name))) {
                try {
                    new ProcessBuilder("mkfifo", "-m", "600", name).redirectErrorStream(true).start().waitFor();
                } catch (InterruptedException error) {
                    throw new IOException(error);
                }
            }
            if (!Files.readAttributes(Path.of(name), BasicFileAttributes.class).isOther()) {
                throw new IOException("there is another file");
            }
            try {
                return FileChannel.open(Path.of(name), how);
            } catch (NoSuchFileException error) {
                // it was removed in this moment
            }
        }
    }
@sender     static class Link {
@sender         final String name;
@sender         FileChannel channel;
@reply @sender         FileChannel back;
@reply @sender         /** A reply came: an end of file means that the server has gone. */
@reply @sender         boolean isReplied;
@sender 
@sender         Link(String name) throws IOException {
@sender             this.name = name;
@sender             channel = open(name, StandardOpenOption.WRITE);
@sender         }
@sender 
@sender         /** Up to 4096 bytes (PIPE_BUF) a message is written whole or not at all. */
@sender         void send(ByteBuffer message) throws IOException {
@sender             while (true) {
@sender                 try {
@sender                     message.clear();
@sender                     while (message.hasRemaining()) {
@sender                         channel.write(message);
@sender                     }
@sender                     message.clear();
@sender                     return;
@sender                 } catch (IOException error) {
@sender                     // EPIPE: its text depends on the language of the user
@sender                 }
@sender                 openAgain(CompletableFuture.supplyAsync(this::openToWrite));
@sender             }
@sender         }
@sender 
@sender         FileChannel openToWrite() {
@sender             try {
@sender                 return open(name, StandardOpenOption.WRITE);
@sender             } catch (IOException error) {
@sender                 throw new UncheckedIOException(error);
@sender             }
@sender         }
@sender 
@sender         /** Waits for the next receiver. What is unread stays for it, as the old descriptor is closed after that. */
@sender         void openAgain(CompletableFuture<FileChannel> next) throws IOException {
@onepeer @sender             System.err.println("the receiver has gone: waiting for another");
@manypeers @sender             System.err.println("no receiver is there now: waiting for one"); // the others may be done, or not there yet
@sender             FileChannel old = channel;
@large @sender             old.close(); // but part of a message must not stay
@sender             channel = next.join();
@sender             old.close();
@sender         }
@sender 
@sender         /** Java can neither poll a FIFO nor open one without waiting: where open(2) waits, there is no receiver. */
@sender         void reopenIfGone() throws IOException {
@sender             CompletableFuture<FileChannel> next = CompletableFuture.supplyAsync(this::openToWrite);
@sender             try {
@sender                 next.get(200, TimeUnit.MILLISECONDS).close();
@sender             } catch (TimeoutException error) {
@sender                 openAgain(next);
@sender             } catch (ExecutionException | InterruptedException error) {
@sender                 throw new IOException(error);
@sender             }
@sender         }
@sender 
@reply @sender         /** False: the server has gone, or no reply came for a second. */
@reply @sender         boolean receiveReply(ByteBuffer reply) throws IOException {
@reply @sender             if (back == null) {
@reply @sender                 // While this end writes as well, open(2) does not wait.
@reply @sender                 FileChannel both = open(name + ".back", StandardOpenOption.READ, StandardOpenOption.WRITE);
@reply @sender                 back = open(name + ".back", StandardOpenOption.READ);
@reply @sender                 both.close();
@reply @sender                 isReplied = false;
@reply @sender             }
@reply @sender             reply.clear();
@reply @sender             for (int tries = 0; tries < 1000 && reply.hasRemaining();) {
@reply @sender                 if (back.read(reply) < 0) {
@reply @sender                     tries = isReplied || reply.position() > 0 ? 1000 : tries + 1;
@reply @sender                     LockSupport.parkNanos(1_000_000); // the server opens it at its first reply
@reply @sender                 }
@reply @sender             }
@reply @sender             isReplied = !reply.hasRemaining();
@reply @sender             if (!isReplied) {
@reply @sender                 back.close();
@reply @sender                 back = null;
@reply @sender             }
@reply @sender             reply.clear();
@reply @sender             return isReplied;
@reply @sender         }
@reply @sender 
@sender         /** What is unread dies with this end, so it stays until the end mark is taken. */
@sender         void finish(ByteBuffer mark) throws IOException, InterruptedException {
@sender             send(mark);
@sender             // The receiver removes the FIFO when it has the end mark; one that took it and did not do so has died.
@sender             for (int waits = 0; Files.exists(Path.of(name)); Thread.sleep(1)) {
@sender                 int unread;
@sender                 try (FileInputStream reader = new FileInputStream(name)) {
@sender                     unread = reader.available();
@sender                 } catch (IOException error) {
@sender                     continue; // it was removed in this moment
@sender                 }
@shared @sender                 if (unread == 0) {
@shared @onesender @sender                     Files.delete(Path.of(name));
@shared @sender                     return;
@shared @sender                 }
@manysenders @unshared @sender                 if (unread == 0) {
@manysenders @unshared @sender                     return;
@manysenders @unshared @sender                 }
@sender                 waits = unread == 0 ? waits + 1 : 0;
@sender                 if (waits > 1000) {
@sender                     send(mark);
@sender                     waits = 0;
@sender                 }
@sender             }
@reply @sender             Files.deleteIfExists(Path.of(name + ".back"));
@sender         }
@sender     }
@receiver     static class Link {
@receiver         final String name;
@receiver         FileChannel channel;
@reply @receiver         FileChannel back;
@receiver 
@receiver         Link(String name) throws IOException {
@receiver             this.name = name;
@receiver             channel = open(name, StandardOpenOption.READ);
@receiver         }
@receiver 
@receiver         /** Up to 4096 bytes (PIPE_BUF) a message comes whole. */
@receiver         void receive(ByteBuffer message) throws IOException {
@receiver             message.clear();
@receiver             while (message.hasRemaining()) {
@receiver                 if (channel.read(message) < 0) {
@onepeer @receiver                     System.err.println("the sender has gone: waiting for another");
@manypeers @receiver                     System.err.println("no sender is there now: waiting for one"); // the others may be done, or not there yet
@receiver                     // Opened again before the old descriptor is closed: what is unread stays.
@receiver                     FileChannel old = channel;
@receiver                     channel = open(name, StandardOpenOption.READ);
@receiver                     old.close();
@receiver                     message.clear();
@receiver                 }
@receiver             }
@receiver         }
@receiver 
@reply @receiver         /** A client that died gets no reply. */
@reply @receiver         void sendReply(ByteBuffer reply) throws IOException {
@reply @receiver             back = back == null ? open(name + ".back", StandardOpenOption.WRITE) : back;
@reply @receiver             try {
@reply @receiver                 for (reply.clear(); reply.hasRemaining();) {
@reply @receiver                     back.write(reply);
@reply @receiver                 }
@reply @receiver             } catch (IOException error) {
@reply @receiver                 back.close();
@reply @receiver                 back = null;
@reply @receiver             }
@reply @receiver         }
@reply @receiver 
@receiver         void finish() throws IOException {
@unshared @receiver             // While this end writes as well, open(2) does not wait.
@unshared @receiver             FileChannel both = open(name, StandardOpenOption.READ, StandardOpenOption.WRITE);
@unshared @receiver             try (both; FileInputStream unread = new FileInputStream(name)) {
@unshared @receiver                 if (unread.available() == 0) { // else there is more, of the next sender
@unshared @receiver                     Files.delete(Path.of(name));
@unshared @receiver                 }
@unshared @receiver             }
@receiver         }
@receiver     }
