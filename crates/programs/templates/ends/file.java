import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
@receives import java.util.ArrayDeque;
@receives import java.util.concurrent.locks.LockSupport;
@compete @receives import java.nio.channels.FileLock;
@compete @receives import java.nio.file.NoSuchFileException;
@sends import java.nio.file.NoSuchFileException;
@sends import java.util.concurrent.ThreadLocalRandom;
    // A folder of messages, each a file of its own that is whole and on the disk once it has its name. They stay until they are received,
    // also when both programs or the machine have ended meanwhile; so their number is bounded by the disk alone.
    static Path makeFolder(String name) throws IOException {
        Path folder = Path.of(name);
        try {
            Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        } catch (FileAlreadyExistsException error) {
            if (!Files.isDirectory(folder)) {
                throw new IOException("there is another file");
            }
        }
        try (FileChannel parent = FileChannel.open(folder.resolve(".."), StandardOpenOption.READ)) {
            parent.force(true); // the name of the folder itself has to be on the disk, too
        }
        return folder;
    }

    /** The names in a folder that begin so, in their order. */
    static List<String> list(Path folder, String begin) throws IOException {
        List<String> names = new ArrayList<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder, begin + "*")) {
            entries.forEach(entry -> names.add(entry.getFileName().toString()));
        }
        Collections.sort(names);
        return names;
    }

    /** Removes a folder without messages, and the parts of messages in it, whose senders died. */
    static void removeFolder(Path folder) throws IOException {
        if (list(folder, "message.").isEmpty()) { // else there is another sender
            for (String part : list(folder, "part.")) {
                Files.delete(folder.resolve(part));
            }
            Files.delete(folder);
        }
    }
@sends     static class Writer {
@sends         final Path folder, part;
@sends         /** Of this sender alone: two in containers may have the same process id. */
@sends         final int id = ThreadLocalRandom.current().nextInt();
@sends         /** On the disk a name is a part of its folder. */
@sends         FileChannel folderFile;
@onesender @sends         long next;
@sends 
@sends         Writer(String name) throws IOException {
@sends             folder = makeFolder(name);
@sends             part = folder.resolve(String.format(Locale.ROOT, "part.%08x", id));
@sends             folderFile = FileChannel.open(folder, StandardOpenOption.READ);
@onesender @sends             List<String> names = list(folder, "message.");
@onesender @sends             if (!names.isEmpty()) { // after the messages of a sender that died
@onesender @sends                 next = Long.parseLong(names.get(names.size() - 1).split("[.]")[1]) + 1;
@onesender @sends             }
@sends         }
@sends 
@sends         void send(ByteBuffer message) throws IOException {
@sends             while (true) {
@sends                 try {
@sends                     put(message);
@sends                     return;
@sends                 } catch (NoSuchFileException error) { // a receiver that was done has removed the folder
@sends                     makeFolder(folder.toString());
@sends                     folderFile.close();
@sends                     folderFile = FileChannel.open(folder, StandardOpenOption.READ);
@sends                 }
@sends             }
@sends         }
@sends 
@sends         void put(ByteBuffer message) throws IOException {
@sends             try (FileChannel file = FileChannel.open(part, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
@sends                 for (message.clear(); message.hasRemaining();) {
@sends                     file.write(message);
@sends                 }
@sends                 message.clear();
@sends                 file.force(true);
@sends             }
@onesender @sends             String name = String.format(Locale.ROOT, "message.%020d.%08x", next++, id);
@manysenders @sends             java.time.Instant now = java.time.Instant.now();
@manysenders @sends             long ns = now.getEpochSecond() * 1_000_000_000 + now.getNano();
@manysenders @sends             String name = String.format(Locale.ROOT, "message.%020d.%08x", ns, id);
@sends             Files.move(part, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
@sends             folderFile.force(true);
@sends         }
@sends     }
@receives     static class Reader {
@receives         final Path folder;
@receives         final ArrayDeque<String> names = new ArrayDeque<>();
@receives         /** The message that was received last. It stays until the next one is asked for: if this program dies, its successor gets it. */
@receives         Path current;
@compete @receives         FileChannel lock;
@receives 
@receives         Reader(String name) throws IOException {
@receives             folder = makeFolder(name);
@receives         }
@receives 
@receives         /** False: nothing came for a second. */
@receives         boolean receive(ByteBuffer message) throws IOException {
@receives             removeCurrent();
@receives             for (long began = System.nanoTime(); System.nanoTime() - began < 1_000_000_000;) {
@receives                 while (!names.isEmpty()) {
@receives                     Path path = folder.resolve(names.remove());
@compete @receives                     if (!lock(path)) {
@compete @receives                         continue;
@compete @receives                     }
@each @receives                     FileChannel file = FileChannel.open(path, StandardOpenOption.READ);
@compete @receives                     FileChannel file = lock; // another one would end the lock where it is closed
@receives                     if (file.size() != BYTES) {
@receives                         throw new IOException(path + " has " + file.size() + " bytes");
@receives                     }
@receives                     for (message.clear(); message.hasRemaining();) {
@receives                         file.read(message);
@receives                     }
@receives                     message.clear();
@each @receives                     file.close();
@receives                     current = path;
@receives                     return true;
@receives                 }
@receives                 look();
@receives                 if (names.isEmpty()) {
@receives                     LockSupport.parkNanos(200_000); // inotify(7) would say when there is one
@receives                 }
@receives             }
@receives             return false;
@receives         }
@receives 
@receives         /** A list that is made while messages come may have a later one and not an earlier one; the second list has what is before the last
@receives             of the first. */
@receives         void look() throws IOException {
@receives             List<String> first = list(folder, "message.");
@receives             if (!first.isEmpty()) {
@receives                 String last = first.get(first.size() - 1);
@receives                 list(folder, "message.").stream().filter(name -> name.compareTo(last) <= 0).forEach(names::add);
@receives             }
@receives         }
@receives 
@receives         void removeCurrent() throws IOException {
@receives             if (current != null) {
@receives                 Files.delete(current);
@receives                 current = null;
@compete @receives                 lock.close();
@receives             }
@receives         }
@compete @receives 
@compete @receives         /** Whether the message is its own: locked by no other receiver, and there. The kernel gives it back when its receiver dies. */
@compete @receives         boolean lock(Path path) throws IOException {
@compete @receives             try {
@compete @receives                 lock = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
@compete @receives             } catch (NoSuchFileException error) {
@compete @receives                 return false;
@compete @receives             }
@compete @receives             FileLock locked = lock.tryLock();
@compete @receives             if (locked == null || !Files.exists(path)) {
@compete @receives                 lock.close();
@compete @receives                 return false;
@compete @receives             }
@compete @receives             return true;
@compete @receives         }
@receives     }
@sender     static class Link {
@sender         final Writer writer;
@sender 
@sender         Link(String name) throws IOException {
@sender             writer = new Writer(name);
@sender         }
@sender 
@sender         void send(ByteBuffer message) throws IOException {
@sender             writer.send(message);
@sender         }
@sender 
@sender         void finish(ByteBuffer mark) throws IOException, InterruptedException {
@sender             send(mark);
@shared @onesender @sender             while (!list(writer.folder, "message.").isEmpty()) {
@shared @onesender @sender                 Thread.sleep(1);
@shared @onesender @sender             }
@shared @onesender @sender             removeFolder(writer.folder);
@sender         }
@sender     }
@receiver     static class Link {
@receiver         final Reader reader;
@receiver 
@receiver         Link(String name) throws IOException {
@receiver             reader = new Reader(name);
@receiver         }
@receiver 
@receiver         void receive(ByteBuffer message) throws IOException {
@receiver             while (!reader.receive(message)) {
@receiver                 // nothing came for a second
@receiver             }
@receiver         }
@receiver 
@receiver         void finish() throws IOException {
@receiver             reader.removeCurrent();
@unshared @receiver             removeFolder(reader.folder);
@receiver         }
@receiver     }
