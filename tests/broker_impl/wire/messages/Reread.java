import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Decodes messages with Kafka's own classes and encodes them again. Each line of standard input is
 * "kind key version hex". The program prints the decoded message as text, and on the next line its
 * encoding as hex.
 */
public class Reread {
    public static void main(String[] args) throws Exception {
        HexFormat hex = HexFormat.of();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(words[1]));
            ApiMessage message = words[0].equals("request") ? type.newRequest() : type.newResponse();
            short version = Short.parseShort(words[2]);
            ByteBuffer bytes = ByteBuffer.wrap(hex.parseHex(words.length > 3 ? words[3] : ""));
            message.read(new ByteBufferAccessor(bytes), version);
            if (bytes.hasRemaining()) {
                throw new IllegalStateException(bytes.remaining() + " bytes left over: " + line);
            }
            ByteBuffer written = MessageUtil.toByteBuffer(message, version);
            byte[] copy = new byte[written.remaining()];
            written.get(copy);
            System.out.println(message.toString());
            System.out.println(hex.formatHex(copy));
        }
    }
}
