import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads lines "class version hex"; answers each with what Kafka's own code makes of the bytes. */
public class Echo {
  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    StringBuilder answers = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.split(" ", -1);
      answers.append(echo(words[0], Short.parseShort(words[1]), words[2])).append('\n');
    }
    System.out.print(answers);
  }

  private static String echo(String name, short version, String hex) throws Exception {
    Message message = (Message) Class.forName(name).getDeclaredConstructor().newInstance();
    ByteBuffer given = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    message.read(new ByteBufferAccessor(given), version);
    if (given.hasRemaining()) {
      return given.remaining() + " bytes too many";
    }
    ObjectSerializationCache cache = new ObjectSerializationCache();
    byte[] bytes = new byte[message.size(cache, version)];
    message.write(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), cache, version);
    return HexFormat.of().formatHex(bytes);
  }
}
