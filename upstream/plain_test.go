package upstream

import (
	"net"
	"net/url"
	"testing"
)

// TestKeptConnectionThatEnds: a request on a kept connection that its server closes instead of
// answering may have been read, so sending it again is another attempt.
func TestKeptConnectionThatEnds(t *testing.T) {
	for retries, answered := range []bool{false, true} {
		address, hits := wire(t, func(conn net.Conn) {
			say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + withLength(good))(conn)
			_, _ = conn.Read(make([]byte, 1)) // of the next request
		})
		d := definition(address)
		d.Retries = retries
		c, route := newClient(t, Options{}), routeTo(t, d)
		if _, err := post(t.Context(), c, route, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if _, err := post(t.Context(), c, route, []byte("{}")); (err == nil) != answered || int(hits.Load()) != 1+retries {
			t.Errorf("%d retries: %v; %d requests were read first on a connection", retries, err, hits.Load())
		}
	}
}

// TestIsPlain: hosts that outbound may connect to.
func TestIsPlain(t *testing.T) {
	for text, expected := range map[string]bool{
		"http://127.0.0.1:1/v1":   true,
		"http://[::1]:1/v1":       true,
		"http://localhost:1/v1":   true,
		"http://models.example./": true,
		"http://127.1/v1":         false,
		"http://0x7f000001/v1":    false,
		"http://10.0.0.0x1/v1":    false,
		"https://127.0.0.1/v1":    false,
	} {
		endpoint, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := isPlain(endpoint); got != expected {
			t.Errorf("%s: got %t", text, got)
		}
	}
}
