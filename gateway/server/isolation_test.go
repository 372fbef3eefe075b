package server_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/server/framing"
)

// TestRequestsShareNothing: clients on many connections pipeline requests, leave in the middle
// of heads and bodies, lie about lengths, and meet handlers that panic. Each answer is the one
// to its own request, and in the end nothing is held for any of them.
func TestRequestsShareNothing(t *testing.T) {
	const clients, rounds = 16, 20
	d := serverOf(io.Discard, func(o *server.Options) { o.BodyTimeout = 10 * time.Second },
		server.Route{Method: http.MethodPost, Path: "/panics", MaxBody: fixed(100_000), Serve: func(*gin.Context, server.Request) { panic("broken") }},
		server.Route{Method: http.MethodPost, Path: "/keeps", MaxBody: fixed(100_000), Serve: func(c *gin.Context, r server.Request) {
			server.KeepBody(c)
			c.Writer.WriteHeader(http.StatusOK)
			_, _ = c.Writer.Write(r.Body[:len(r.Body)/2])
			c.Writer.Flush()
			panic("broken in the middle")
		}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hs := &http.Server{Handler: d}
	limit := server.LimitConnections(hs, clients/2) // so that some are closed, too
	done := make(chan struct{})
	go func() { defer close(done); _ = hs.Serve(framing.NewListener(listener)) }()
	defer func() { hs.Close(); <-done }()

	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			for round := range rounds {
				misbehave(t, listener.Addr().String(), random, fmt.Sprintf("client%d-%d", client, round))
			}
		})
	}
	all.Wait()
	eventually(t, "something is held when all clients have left", func() bool {
		return d.InFlight() == 0 && server.HeldBytes(d) == 0 && limit.Waiting() == 0 && server.Connections(limit) == 0
	})
}

// misbehave opens a connection, sends some whole requests with an id of their own, whose answers
// are checked, and mostly ends with something else.
func misbehave(t *testing.T, address string, random *rand.Rand, id string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	body := strings.Repeat(id+" ", 1+random.IntN(2000))
	head := func(path string, length int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nCallgate-Id: %s\r\nContent-Length: %d\r\n", path, id, length)
	}
	whole := head("/talk", len(body)) + "\r\n" + body
	n := random.IntN(4)
	var sent strings.Builder
	for range n {
		sent.WriteString(whole)
	}
	ends := []string{
		"", head("/panics", len(body)) + "\r\n" + body, head("/keeps", len(body)) + "\r\n" + body,
		head("/talk", len(body))[:30], head("/talk", len(body)) + "\r\n" + body[:len(body)/2], head("/talk", len(body)+1) + "\r\n" + body,
		head("/talk", len(body)-1) + "\r\n" + body, head("/talk", 1<<40) + "\r\n" + body, head("/talk", len(body)) + "Expect: 100-continue\r\n\r\n" + body,
		"POST /talk HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s", len(body), body),
		"POST /talk HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	}
	sent.WriteString(ends[random.IntN(len(ends))])
	text := sent.String()
	for len(text) > 0 {
		piece := min(len(text), 1+random.IntN(20_000))
		if _, err := io.WriteString(c, text[:piece]); err != nil {
			return // it was closed as one that waits longest
		}
		text = text[piece:]
	}
	if random.IntN(3) == 0 {
		return // without reading
	}
	answers := bufio.NewReader(c)
	for range n {
		r, err := http.ReadResponse(answers, nil)
		if err != nil {
			return
		}
		got, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return
		}
		if want := fmt.Sprintf("// %s  %q application/json ", id, body); string(got) != want && r.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s got %d %.100q", id, r.StatusCode, got)
		}
	}
	if random.IntN(2) == 0 {
		_ = c.SetDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = io.Copy(io.Discard, answers) // what else there is
	}
}
