package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/callgate/callgate/refusal"
)

// drips writes a head, and then a piece each time, well within every phase's own time.
func drips(head, piece string) func(net.Conn) {
	return func(conn net.Conn) {
		_, err := io.WriteString(conn, head)
		for err == nil {
			time.Sleep(soon / 10)
			_, err = io.WriteString(conn, piece)
		}
	}
}

// TestTotalInEachPhase: whatever a provider sends, and as slowly as it likes, its exchange ends
// once the whole has taken too long.
func TestTotalInEachPhase(t *testing.T) {
	whole := func(c *Client, route *Route) error {
		_, err := post(context.Background(), c, route, []byte(`{}`))
		return err
	}
	streamed := func(c *Client, route *Route) error {
		e, err := openEvents(context.Background(), c, route, []byte(`{}`))
		if err != nil {
			return err
		}
		defer e.Close()
		_, err = drainError(e)
		return err
	}
	paused := func(c *Client, route *Route) error {
		e, err := openEvents(context.Background(), c, route, []byte(`{}`))
		if err != nil {
			return err
		}
		defer e.Close()
		if _, _, err := e.Next(); err != nil {
			return err
		}
		time.Sleep(3 * soon / 2)
		_, err = drainError(e)
		return err
	}
	for name, c := range map[string]struct {
		answer func(net.Conn)
		ask    func(*Client, *Route) error
	}{
		"nothing":                     {func(conn net.Conn) { untilGone(conn) }, whole},
		"a head by bytes":             {drips("HTTP/1.1 200 OK\r\nX-A: ", "a"), whole},
		"informational heads":         {drips("", "HTTP/1.1 103 x\r\n\r\n"), whole},
		"a body by bytes":             {drips(jsonHead+"Content-Length: 100000\r\n\r\n", " "), whole},
		"a body in chunks":            {drips(jsonHead+chunked, chunkOf(" ")), whole},
		"a stream by bytes":           {drips(streamHead+chunked, chunkOf(":")), streamed},
		"a stream of events":          {drips(streamHead+chunked, chunkOf(textEvent)), streamed},
		"comments after the last":     {drips(streamHead+chunked+chunkOf(endEvent+doneEvent), chunkOf(":\n")), streamed},
		"a stream, and a slow reader": {drips(streamHead+chunked, chunkOf(textEvent)), paused},
	} {
		for _, secured := range []bool{false, true} {
			t.Run(name+", "+map[bool]string{false: "plain", true: "TLS"}[secured], func(t *testing.T) {
				t.Parallel()
				var options Options
				var url string
				if secured {
					s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body)
						conn, _, err := http.NewResponseController(w).Hijack()
						if err != nil {
							t.Error(err)
							return
						}
						defer conn.Close()
						c.answer(conn)
					}))
					defer s.Close()
					options.Certificates, url = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, s.URL
				} else {
					url, _ = wire(t, c.answer)
				}
				d := definition(url)
				d.Timeouts.Total = 4 * soon
				client, begun := newClient(t, options), time.Now()
				err := c.ask(client, routeTo(t, d))
				if code(t, err) != refusal.UpstreamTimeout || !errors.Is(err, errTotal) {
					t.Errorf("found %v", err)
				}
				if took := time.Since(begun); took < 3*soon || took > patient {
					t.Errorf("it took %v", took)
				}
			})
		}
	}
}
