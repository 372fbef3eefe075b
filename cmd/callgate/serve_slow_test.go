package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// descriptors are how many a process has open.
func (g *gate) descriptors(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(g.cmd.Process.Pid), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// goroutines are how many a gateway says that it has.
func (g *gate) goroutines(t testing.TB) int {
	t.Helper()
	for line := range strings.Lines(g.askAdmin(t, "/metrics").body) {
		if n, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			count, err := strconv.Atoi(strings.TrimSpace(n))
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
	}
	t.Fatal("the metrics do not tell the goroutines")
	return 0
}

// median of how long requests take.
func (g *gate) median(t testing.TB) time.Duration {
	t.Helper()
	took := make([]time.Duration, 101)
	for i := range took {
		before := time.Now()
		if r := g.ask(t, http.MethodPost, "/v1/check", use("hit", 1), "Content-Type", "text/plain"); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		took[i] = time.Since(before)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// TestSlowClients: thousands of clients that send a byte at a time, or never
// read their answer, take nothing from the others, and are let go.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: open descriptors are counted in /proc")
	}
	clients := 2000
	if testing.Short() {
		clients = 300
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if most := int(limit.Cur) - 500; clients > most {
		t.Logf("scaled down: %d clients instead of %d, since %d descriptors may be open", most, clients, limit.Cur)
		clients = most
	}
	w := newWorkshop(t)
	config, _ := workConfig(t, w, ", max_in_flight: 100", "{}\n")
	g := serveGate(t, config)
	alone := g.median(t)
	g.client.CloseIdleConnections()
	baseline, running := g.descriptors(t), g.goroutines(t)

	// Each sends what it has, then a byte of it at a time. Bodies that drip are more
	// than the requests that are answered at the same time.
	head := "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n"
	whole := "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	conns := make([]net.Conn, clients)
	for i := range conns {
		conns[i] = g.connected(t)
		switch {
		case i%5 < 3:
			fmt.Fprint(conns[i], head+"\r\nx") // a body that drips
		case i%5 == 3:
			fmt.Fprint(conns[i], strings.Repeat(whole, 200)) // never reads
		default:
			fmt.Fprint(conns[i], head[:20]) // a head that drips
		}
	}
	stop := make(chan struct{})
	var dripping sync.WaitGroup
	dripping.Go(func() {
		for {
			for i, c := range conns {
				if i%5 != 3 {
					c.Write([]byte("x")) // one that was let go says so
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	beside := g.median(t)
	if held := g.descriptors(t); held < baseline+clients/2 {
		t.Errorf("%d descriptors with %d slow clients: they do not hold anything", held, clients)
	}
	t.Logf("the median of a check is %v alone and %v beside %d slow clients", alone, beside, clients)
	if _, measured := long(t, "CALLGATE_SOAK", 0); measured && beside > 20*alone+50*time.Millisecond {
		t.Errorf("slow clients slow the others: %v instead of %v", beside, alone)
	}
	// Heads have five seconds.
	eventually(t, "slow heads are let go", func() bool { return g.descriptors(t) < baseline+clients*9/10 })
	close(stop)
	dripping.Wait()
	for _, c := range conns {
		c.Close()
	}
	eventually(t, "descriptors and goroutines are as before", func() bool {
		g.client.CloseIdleConnections()
		return g.descriptors(t) <= baseline+5 && g.goroutines(t) <= running+10
	})
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
}

// TestSoak: after thousands of mixed requests a gateway holds what it held
// before.
func TestSoak(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: open descriptors are counted in /proc")
	}
	requests := 2000
	if testing.Short() {
		requests = 200
	}
	w := newWorkshop(t)
	close(w.free)
	config, data := workConfig(t, w, "", "{}\n")
	g := serveGate(t, config)
	ask := func(i int) {
		text := []string{"Content-Type", "text/plain"}
		switch i % 8 {
		case 0:
			g.call(t, use("hit", i))
		case 1:
			g.call(t, use("slow", i), "Idempotency-Key", strconv.Itoa(i))
		case 2:
			g.call(t, "just words")
		case 3:
			g.call(t, `{"tool":{"name":"nobody","arguments":{}}}`)
		case 4:
			g.ask(t, http.MethodPost, "/v1/check", strings.Repeat("x", 100_000), text...)
		case 5:
			g.ask(t, http.MethodGet, "/v1/calls/call_none", "")
		case 6:
			g.call(t, use("fail", i))
		case 7:
			c, err := net.Dial("tcp", g.listen)
			if err == nil { // one that leaves in the middle
				fmt.Fprint(c, "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\n{")
				c.Close()
			}
		}
	}
	for i := range 16 {
		ask(i)
	}
	g.client.CloseIdleConnections()
	baseline, running := g.descriptors(t), g.goroutines(t)
	var wait sync.WaitGroup
	const askers = 8
	for asker := range askers {
		wait.Go(func() {
			for i := asker; i < requests; i += askers {
				ask(i)
			}
		})
	}
	wait.Wait()
	eventually(t, "descriptors and goroutines are as before", func() bool {
		g.client.CloseIdleConnections()
		return g.descriptors(t) <= baseline+5 && g.goroutines(t) <= running+10
	})
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	verified(t, data)
}
