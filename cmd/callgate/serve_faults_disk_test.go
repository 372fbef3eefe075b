package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// onDisk is a gateway whose data folder can be harmed. Its calls have keys, so
// that both the log and the store are written to.
type onDisk struct {
	*gate
	tool         *recordingTool
	config, data string
	next         int
}

func newOnDisk(t testing.TB, prepare func(data string), environment ...string) *onDisk {
	t.Helper()
	d := &onDisk{tool: newRecordingTool()}
	server := httptest.NewServer(d.tool)
	t.Cleanup(server.Close)
	d.config, d.data = effectsConfig(t, server.URL, "")
	if err := os.Mkdir(d.data, 0o700); err != nil {
		t.Fatal(err)
	}
	prepare(d.data)
	d.gate = serveGate(t, d.config, environment...)
	return d
}

// fresh sends a new call, with its key or without one.
func (d *onDisk) fresh(t testing.TB, keyed bool) (n int, r reply) {
	t.Helper()
	d.next++
	return d.next, d.repeat(t, d.next, keyed)
}

func (d *onDisk) repeat(t testing.TB, n int, keyed bool) reply {
	t.Helper()
	if !keyed {
		return d.call(t, numbered("once", n))
	}
	return d.call(t, numbered("once", n), "Idempotency-Key", fmt.Sprint("key-", n))
}

// refuses waits until calls of both kinds are refused ten times in a row, and holds
// none of them to be dispatched. A record that is shorter than another may have had
// the last room.
func (d *onDisk) refuses(t testing.TB, when string) {
	t.Helper()
	refused := 0
	eventually(t, when+" calls are refused", func() bool {
		n, r := d.fresh(t, refused%2 == 0)
		code := r.code()
		switch {
		case isResult(r):
			refused = 0
			return false
		case r.status != http.StatusServiceUnavailable || code != "audit_unavailable" && code != "store_unavailable":
			t.Errorf("%s: %d %s", when, r.status, r.body)
		case d.tool.of(n) != 0:
			t.Errorf("%s: a call that was refused reached its tool", when)
		}
		refused++
		return refused == 10
	})
}

// serves waits until calls of both kinds are answered.
func (d *onDisk) serves(t testing.TB, when string) {
	t.Helper()
	for _, keyed := range []bool{true, false} {
		eventually(t, when+" calls are answered", func() bool { _, r := d.fresh(t, keyed); return isResult(r) })
	}
}

// callWithKey sends a call whose key is asked for later.
func (d *onDisk) callWithKey(t testing.TB) (n int, r reply) {
	t.Helper()
	eventually(t, "a call with a key is answered", func() bool { n, r = d.fresh(t, true); return isResult(r) })
	return n, r
}

// end stops the gateway.
func (d *onDisk) end(t testing.TB, code int) {
	t.Helper()
	if got := d.stop(t); got != code {
		t.Errorf("exit code %d, want %d: %s", got, code, tail(d.stderr.String(), 500))
	}
}

// settled holds the log to have each call's one outcome.
func (d *onDisk) settled(t testing.TB) {
	t.Helper()
	readLedger(t, d.data)
	for n := 1; n <= d.next; n++ {
		if hits := d.tool.of(n); hits > 1 {
			t.Errorf("call %d, which acts once, reached its tool %d times", n, hits)
		}
	}
}

// TestFullDiskWhileServing fills the disk of the log and the store under a gateway
// that serves. Every call is refused and none is dispatched; when there is room it
// serves again by itself.
func TestFullDiskWhileServing(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("skipped: mounting a small tmpfs needs root")
	}
	d := newOnDisk(t, func(data string) {
		if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=512k"); err != nil {
			t.Skipf("skipped: a tmpfs cannot be mounted here: %v", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(data, syscall.MNT_DETACH) })
	})
	d.serves(t, "at first")
	kept, first := d.callWithKey(t)
	filler := filepath.Join(d.data, "filler")
	fill, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 16; size > 0; {
		if _, err := fill.Write(make([]byte, size)); err != nil {
			size /= 2 // the last byte too
		}
	}
	fill.Close()
	d.refuses(t, "on a full disk")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	d.serves(t, "with room")
	if r := d.callRetrying(t, numbered("once", kept), "Idempotency-Key", fmt.Sprint("key-", kept)); !isResult(r) || r.header.Get("Callgate-Call-Id") != first.header.Get("Callgate-Call-Id") {
		t.Errorf("the key from before: %d %s", r.status, r.body)
	}
	d.end(t, exitAccepted)
	d.settled(t)
}

// The system calls that sync the log and the store.
const logSyncs, storeSyncs = "fsync", "fdatasync"

// traced has strace do something to system calls of a process, until it is told to
// end.
func traced(t testing.TB, process *os.Process, syncs, inject string) (end func()) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("skipped: there is no strace to inject with")
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	tracer := exec.CommandContext(ctx, strace, "-f", "-o", os.DevNull, "-e", "trace="+syncs, "-e", "inject="+syncs+":"+inject, "-p", fmt.Sprint(process.Pid))
	trace, err := tracer.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	attached, err := bufio.NewReader(trace).ReadString('\n')
	if !strings.Contains(attached, "attached") {
		cancel()
		_ = tracer.Wait()
		t.Skipf("skipped: strace cannot trace here: %s %v", attached, err)
	}
	go io.Copy(io.Discard, trace)
	return func() {
		_ = tracer.Process.Signal(os.Interrupt) // it detaches
		_ = tracer.Wait()
	}
}

// TestDiskReportsErrors has syncs of the log fail, or of the store, under a gateway
// that serves. Nothing is dispatched meanwhile that they should have held. The log
// is written anew when the disk is well again; the store, of which the kernel may
// keep what the disk does not have, is not trusted until the next start, which has
// lost nothing.
func TestDiskReportsErrors(t *testing.T) {
	t.Parallel()
	d := newOnDisk(t, func(string) {})
	d.serves(t, "at first")
	kept, first := d.callWithKey(t)
	heal := traced(t, d.cmd.Process, logSyncs, "error=EIO")
	d.refuses(t, "while syncs of the log fail")
	heal()
	eventually(t, "calls are answered", func() bool { _, r := d.fresh(t, false); return isResult(r) })

	heal = traced(t, d.cmd.Process, storeSyncs, "error=EIO")
	refused := func(when string) {
		t.Helper()
		n, r := d.fresh(t, true)
		if code := r.code(); code != "store_unavailable" && code != "audit_unavailable" || d.tool.of(n) != 0 {
			t.Errorf("%s: %d %s, and %d hits", when, r.status, r.body, d.tool.of(n))
		}
	}
	eventually(t, "the store is not trusted", func() bool {
		refused("while syncs of the store fail")
		return strings.Contains(d.operators(t).Calls, "no longer trusted")
	})
	heal()
	for range 5 {
		refused("in a store that is not trusted")
	}
	eventually(t, "a call without a key is answered", func() bool { _, r := d.fresh(t, false); return isResult(r) })
	d.end(t, exitAccepted)
	d.gate = serveGate(t, d.config)
	d.serves(t, "at the next start")
	if r := d.callRetrying(t, numbered("once", kept), "Idempotency-Key", fmt.Sprint("key-", kept)); !isResult(r) || r.header.Get("Callgate-Call-Id") != first.header.Get("Callgate-Call-Id") {
		t.Errorf("the key from before: %d %s", r.status, r.body)
	}
	d.end(t, exitAccepted)
	d.settled(t)
}

// TestDiskBlocks holds each sync up for longer than anybody waits. Calls are refused, and
// not dispatched when the disk continues; then it serves again.
func TestDiskBlocks(t *testing.T) {
	t.Parallel()
	d := newOnDisk(t, func(string) {}, usualWaits)
	d.serves(t, "at first")
	heal := traced(t, d.cmd.Process, logSyncs+","+storeSyncs, "delay_enter=60000000")
	// Requests from before the disk blocked may still be answered.
	eventually(t, "the disk stands still", func() bool { _, r := d.fresh(t, false); return r.code() == "audit_unavailable" })
	before := d.next
	for i := range 6 {
		if _, r := d.fresh(t, i%2 == 0); isResult(r) || r.status != http.StatusServiceUnavailable && r.status != http.StatusAccepted {
			t.Errorf("while the disk stands still: %d %s", r.status, r.body)
		}
	}
	refused := d.next
	heal()
	d.serves(t, "when it continues")
	for n := before + 1; n <= refused; n++ {
		if hits := d.tool.of(n); hits != 0 {
			t.Errorf("call %d was refused, and reached its tool %d times", n, hits)
		}
	}
	d.end(t, exitAccepted)
	d.settled(t)
}
