package io.ratelimited.redis;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;

/**
 * A certificate of 127.0.0.1, signed by itself: who trusts it trusts that server alone. Made by the JDK that runs the
 * tests.
 *
 * @param certificate a file in PEM
 * @param key its private key, a file in PEM
 */
public record Certificate(Path certificate, Path key) {

    private static final String PASSWORD = "changeit";

    /**
     * Makes one.
     *
     * @param directory for its files; each certificate needs one of its own
     */
    public static Certificate selfSigned(Path directory) {
        Path store = directory.resolve("server.p12");
        String told = RedisProcess.output(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair",
                "-alias",
                "server",
                "-keyalg",
                "EC",
                "-groupname",
                "secp256r1",
                "-dname",
                "CN=localhost",
                "-ext",
                "san=ip:127.0.0.1",
                "-storetype",
                "PKCS12",
                "-storepass",
                PASSWORD,
                "-keystore",
                store.toString());
        if (!Files.exists(store)) {
            throw new IllegalStateException("no certificate: " + told);
        }
        try (InputStream in = Files.newInputStream(store)) {
            KeyStore keys = KeyStore.getInstance("PKCS12");
            keys.load(in, PASSWORD.toCharArray());
            return new Certificate(
                    pem(
                            directory.resolve("server.crt"),
                            "CERTIFICATE",
                            keys.getCertificate("server").getEncoded()),
                    pem(
                            directory.resolve("server.key"),
                            "PRIVATE KEY",
                            keys.getKey("server", PASSWORD.toCharArray()).getEncoded()));
        } catch (GeneralSecurityException ex) {
            throw new IllegalStateException(ex);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    private static Path pem(Path file, String what, byte[] content) throws IOException {
        String text = Base64.getMimeEncoder().encodeToString(content);
        return Files.writeString(file, "-----BEGIN " + what + "-----\n" + text + "\n-----END " + what + "-----\n");
    }
}
