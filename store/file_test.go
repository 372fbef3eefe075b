package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/internal/testhooks"
	"github.com/callgate/callgate/store/redisstore"
)

// What makes room rides with the commits of the calls: nobody waits for a second transaction, and the
// bounds hold but for what is under way.
func TestEvictionsRide(t *testing.T) {
	var transactions atomic.Int64
	s := openFile(t, t.TempDir(), boltstore.Options{
		Bounds: store.Bounds{Calls: 8, PrincipalPercent: 100},
		Hooks:  testhooks.Bolt{BeforeCommit: func() error { transactions.Add(1); return nil }},
	})
	const calls = 100
	kept := func(n int) (kept int) {
		for i := range n {
			if _, err := s.Get(ctx, fmt.Sprint(i), store.OfAnyone()); err == nil {
				kept++
			}
		}
		return kept
	}
	start := time.Now()
	for i := range calls {
		ended(t, s, newCall(fmt.Sprint(i), ""))
		if n := kept(i + 1); n > 8+2 { // what rides with the next call, and that
			t.Fatalf("%d calls are kept after %d", n, i+1)
		}
	}
	// One that nobody commits with comes alone, at the next of the ticks, which are 200 ms apart.
	if n, ticks := transactions.Load(), int64(time.Since(start)/(200*time.Millisecond)); n > 2*calls+ticks+1 {
		t.Errorf("%d calls took %d transactions in %d ticks", calls, n, ticks)
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := i; j < calls; j += 4 {
				ended(t, s, newCall(fmt.Sprint(calls+j), ""))
			}
		})
	}
	all.Wait()
	for i := range 4 { // what the last ones have left
		ended(t, s, newCall(fmt.Sprint("last", i), ""))
	}
	if n := kept(2 * calls); n < 2 || n > 8 {
		t.Errorf("%d calls are left of 8", n)
	}
}

// An id that the file could not take is refused before it is written: what is written with it would be
// refused, too, and the file would not be trusted any more.
func TestLongIDs(t *testing.T) {
	s := openFile(t, t.TempDir(), boltstore.Options{})
	for _, n := range []int{1025, bbolt.MaxKeySize - 24, bbolt.MaxKeySize, bbolt.MaxKeySize + 1} {
		id := strings.Repeat("x", n)
		if _, err := s.Open(ctx, newCall(id, "k")); err == nil {
			t.Errorf("opened a call with an id of %d bytes", n)
		}
		if err := s.AddGrant(ctx, approval.Grant{ID: "grant_" + id}); err == nil {
			t.Errorf("added a grant with an id of %d bytes", n)
		}
		ended(t, s, newCall(fmt.Sprint(n), fmt.Sprint(n)))
	}
}

// A process that comes after another finds what that left, each call once.
func TestRecover(t *testing.T) {
	dir := t.TempDir()
	f := openFile(t, dir, boltstore.Options{})
	opened(t, f, newCall("opened", "k0"))
	dispatched(t, f, newCall("dispatched", "k1"), read)
	id := dispatched(t, f, newCall("waiting", "k2"), once)
	must(t, f.Update(ctx, id, store.Defer{Until: time.Now()}))
	ended(t, f, newCall("ended", "k3"))
	if calls, err := f.Recover(ctx, store.Abandoned, 10); len(calls) != 0 || err != nil {
		t.Errorf("its own calls: %+v, %v", calls, err)
	}
	must(t, f.Close())
	f = openFile(t, dir, boltstore.Options{})
	dispatched(t, f, newCall("its own", "k4"), once)
	steps := map[string]store.Step{}
	for {
		calls, err := f.Recover(ctx, store.Abandoned, 1)
		must(t, err)
		if len(calls) == 0 {
			break
		}
		steps[calls[0].ID] = calls[0].Step
	}
	if len(steps) != 2 || steps["dispatched"] != store.Dispatched || steps["waiting"] != store.Waiting {
		t.Errorf("recovered %v", steps)
	}
	if c, err := f.Get(ctx, "ended", store.OfRecovery()); err != nil || string(c.Answer.Result) != "r" {
		t.Errorf("ended: %+v, %v", c, err)
	}
	must(t, f.Update(ctx, "dispatched", store.Redispatch{}))
	if c, err := f.Get(ctx, "dispatched", store.OfAnyone()); err != nil || c.Attempts != 2 {
		t.Errorf("%d attempts, %v", c.Attempts, err)
	}
	opened(t, f, newCall("new", "k0")) // what was only opened is gone
	for i := 1; i < 4; i++ {
		if prior, err := f.Open(ctx, newCall(fmt.Sprint("new", i), fmt.Sprint("k", i))); prior == nil || err != nil {
			t.Errorf("k%d starts a second call, %v", i, err)
		}
	}
	if due, err := f.Recover(ctx, store.Expired, 10); len(due) != 1 || err != nil {
		t.Errorf("%+v, %v", due, err)
	}
}

// The writer is killed at random moments: what it was told is there.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	all := map[string]string{}
	for round := range 4 {
		s := spawn(t, "file", dir, fmt.Sprint(round), redisstore.Options{})
		for before := len(all); len(all) < before+3; {
			line, ok := <-s.lines
			if !ok || line[0] == "error" {
				t.Fatal(line)
			}
			all[line[1]] = line[0]
		}
		time.Sleep(time.Duration(20+rand.IntN(150)) * time.Millisecond)
		must(t, s.cmd.Process.Signal(syscall.SIGKILL))
		for id, step := range s.said(t) {
			all[id] = step
		}
		_ = s.cmd.Wait()
		f := openFile(t, dir, boltstore.Options{})
		rank := map[string]int{"dispatched": 1, "waiting": 2, "ended": 3}
		for id, step := range all {
			c, err := f.Get(ctx, id, store.Of("p"))
			if err != nil || rank[string(c.Step)] < rank[step] {
				t.Errorf("%s was %s, is %s, %v", id, step, c.Step, err)
			}
			if c.Step == store.Ended && string(c.Answer.Result) != "result of "+id {
				t.Errorf("%s has another result", id)
			}
			if c.Key == "" {
				continue
			}
			if prior, err := f.Open(ctx, newCall("second of "+id, c.Key)); prior == nil || prior.ID != id || err != nil {
				t.Errorf("%s starts a second call", c.Key)
			}
		}
		must(t, f.Close())
	}
}

// A disk that does not answer holds nobody up, and what it then writes of a
// dispatch that was refused is taken back.
func TestBlockedDisk(t *testing.T) {
	var block atomic.Pointer[chan struct{}]
	var entered atomic.Bool
	dir := t.TempDir()
	patiently := openFile(t, dir, boltstore.Options{})
	ended(t, patiently, newCall("first", "first"))
	must(t, patiently.Close())
	f := openFile(t, dir, beforeCommit(boltstore.Options{Wait: 2 * time.Second}, func() error {
		if c := block.Load(); c != nil {
			entered.Store(true)
			<-*c
		}
		return nil
	}))
	id := opened(t, f, newCall("1", "k"))
	held := make(chan struct{})
	block.Store(&held)
	release := sync.OnceFunc(func() { block.Store(nil); close(held) })
	defer release()
	start := time.Now()
	// A machine that is busy may not have begun to write when the caller leaves.
	for refused(t, f.Dispatch(ctx, id, once), store.ErrUnavailable); !entered.Load(); {
		refused(t, f.Dispatch(ctx, id, once), store.ErrUnavailable)
	}
	if d := time.Since(start); d > patient/2 {
		t.Errorf("refused after %v", d)
	}
	must(t, f.Settle(ctx, id))
	if _, err := f.Get(ctx, "first", store.Of("p")); err != nil {
		t.Errorf("reading waits for the disk: %v", err)
	}
	for ready, _ := f.Ready(); ready; ready, _ = f.Ready() {
		time.Sleep(5 * time.Millisecond) // until it has been blocked for as long as it waits
	}
	start = time.Now()
	for range 100 { // at once: together they take less than one of them would wait
		_, err := f.Open(ctx, newCall("2", "k2"))
		refused(t, err, store.ErrUnavailable)
	}
	if d := time.Since(start); d > patient/2 {
		t.Errorf("refused after %v", d)
	}
	release()
	// A machine that stands still for two seconds has a disk that does not answer.
	for n, end := 3, time.Now().Add(patient); ; n++ {
		next := fmt.Sprint(n)
		prior, err := f.Open(ctx, newCall(next, "k"))
		if prior == nil && err == nil {
			if err = f.Dispatch(ctx, next, once); err == nil {
				break
			}
			must(t, f.Settle(ctx, next))
		}
		if time.Now().After(end) {
			t.Fatalf("the key is still taken: %+v, %v", prior, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	_, err := f.Get(ctx, "1", store.OfAnyone())
	refused(t, err, store.ErrNotFound)
}

// A dispatch that is written after its caller has left, settled the call and opened it anew is taken back,
// and what is kept is counted once: the only place is free again.
func TestALateDispatch(t *testing.T) {
	var block atomic.Pointer[chan struct{}]
	entered := make(chan struct{}, 16)
	f := openFile(t, t.TempDir(), beforeCommit(boltstore.Options{Bounds: store.Bounds{Calls: 1, PrincipalPercent: 100}}, func() error {
		if c := block.Load(); c != nil {
			entered <- struct{}{}
			<-*c
		}
		return nil
	}))
	opened(t, f, newCall("1", "k"))
	held := make(chan struct{})
	block.Store(&held)
	leaves, leave := context.WithCancel(ctx)
	go func() {
		<-entered
		leave()
	}()
	refused(t, f.Dispatch(leaves, "1", once), store.ErrUnavailable)
	must(t, f.Settle(ctx, "1"))
	opened(t, f, newCall("1", "k"))
	block.Store(nil)
	close(held)
	if err := f.Dispatch(ctx, "1", once); err == nil || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("dispatched anew: %v", err)
	}
	within(t, "the key and the place are free", func() bool {
		prior, err := f.Open(ctx, newCall("2", "k"))
		return prior == nil && err == nil
	})
	must(t, f.Dispatch(ctx, "2", once))
	_, err := f.Open(ctx, newCall("3", "k3"))
	refused(t, err, store.ErrFull)
}

// A disk that stands still for a second refuses nothing, but for those that are too many to wait.
func TestStalledDisk(t *testing.T) {
	var block atomic.Pointer[chan struct{}]
	entered := make(chan struct{}, 16)
	f, err := boltstore.Open(t.TempDir(), beforeCommit(boltstore.Options{}, func() error {
		if c := block.Load(); c != nil {
			entered <- struct{}{}
			<-*c
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	const many, room = 1100, 1024
	first := opened(t, f, newCall("first", "first"))
	for n := range many {
		opened(t, f, newCall(fmt.Sprint(n), fmt.Sprint("key ", n)))
	}
	held := make(chan struct{})
	release := sync.OnceFunc(func() { block.Store(nil); close(held) })
	defer release()
	block.Store(&held)
	var waiting sync.WaitGroup
	var refusals atomic.Int64
	start := time.Now()
	dispatch := func(id string) {
		waiting.Go(func() {
			if err := f.Dispatch(ctx, id, once); err != nil {
				refusals.Add(1)
			}
		})
	}
	dispatch(first)
	<-entered
	time.Sleep(400 * time.Millisecond) // longer than a disk that works takes
	for n := range many {
		dispatch(fmt.Sprint(n))
	}
	for refusals.Load() < many-room && time.Since(start) < patient {
		time.Sleep(5 * time.Millisecond)
	}
	release()
	waiting.Wait()
	if took := time.Since(start); took > 4*time.Second {
		t.Skipf("this machine took %v", took)
	}
	if n := refusals.Load(); n != many-room {
		t.Errorf("%d of %d were refused, expected %d", n, many, many-room)
	}
}

// A write that has not started when its caller leaves is never made.
func TestCallersLeave(t *testing.T) {
	f := openFile(t, t.TempDir(), boltstore.Options{})
	id := opened(t, f, newCall("1", "k"))
	gone, cancel := canceled()
	defer cancel()
	for range 20 {
		if err := f.Dispatch(gone, id, once); err == nil {
			break // it was faster
		}
	}
	must(t, f.Settle(ctx, id))
}

// After a failed sync nothing is written until the file is opened anew.
func TestFailedSync(t *testing.T) {
	dir := t.TempDir()
	var fail atomic.Bool
	f := openFile(t, dir, beforeCommit(boltstore.Options{}, func() error {
		if fail.Load() {
			return syscall.EIO
		}
		return nil
	}))
	ended(t, f, newCall("0", "k0"))
	id := opened(t, f, newCall("1", "k1"))
	fail.Store(true)
	refused(t, f.Dispatch(ctx, id, once), store.ErrUnavailable)
	fail.Store(false)
	refused(t, f.Dispatch(ctx, id, once), store.ErrUnavailable)
	_, err := f.Open(ctx, newCall("2", "k2"))
	refused(t, err, store.ErrUnavailable)
	must(t, f.Close())
	f = openFile(t, dir, boltstore.Options{})
	dispatched(t, f, newCall("1", "k1"), once)
	if prior, err := f.Open(ctx, newCall("2", "k0")); prior == nil || err != nil {
		t.Errorf("lost: %v", err)
	}
}

// A panic while the file is written is refused as any failure of the disk. Its text, which
// may quote a record, is in no error, and the file can be closed.
func TestPanicOfTheFile(t *testing.T) {
	const canary = "hunter2"
	f := openFile(t, t.TempDir(), beforeCommit(boltstore.Options{}, func() error { panic("page 7: " + canary) }))
	id := opened(t, f, newCall("1", "k1"))
	err := f.Dispatch(ctx, id, once)
	refused(t, err, store.ErrUnavailable)
	_, cause := f.Ready()
	for _, err := range []error{err, cause} {
		if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "string") {
			t.Errorf("got %v, expected the type of the panic and not its text", err)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- f.Close() }()
	select {
	case err := <-closed:
		must(t, err)
	case <-time.After(patient):
		t.Fatal("the file cannot be closed")
	}
}

// The same with a kernel that says so.
func TestFailedSyncOfTheKernel(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("strace is not installed")
	}
	dir := t.TempDir()
	openFile(t, dir, boltstore.Options{}).Close()
	s := spawn(t, "file", dir, "child", redisstore.Options{}, strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=20+")
	known := map[string]bool{}
	last := ""
	for line := range s.lines {
		if line[0] == "error" {
			last = line[1]
		} else {
			known[line[1]] = true
		}
	}
	if last == "" {
		t.Skip("strace may not trace here")
	}
	if !strings.Contains(last, "not trusted") && !strings.Contains(last, "input/output error") {
		t.Errorf("got %q", last)
	}
	f := openFile(t, dir, boltstore.Options{})
	for id := range known {
		if _, err := f.Get(ctx, id, store.Of("p")); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if len(known) == 0 {
		t.Error("nothing was confirmed before the fault")
	}
}

// A full disk refuses, and serves again when there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if os.Getuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("mounting a small disk needs root on Linux")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	f := openFile(t, dir, boltstore.Options{})
	ballast := filepath.Join(dir, "ballast")
	ended(t, f, newCall("0", "k0"))
	must(t, os.WriteFile(ballast, make([]byte, 700<<10), 0o600))
	big := once
	big.Arguments = make([]byte, 60<<10)
	var failed error
	n := 0
	for ; n < 50 && failed == nil; n++ {
		id := opened(t, f, newCall(fmt.Sprint("big", n), fmt.Sprint("big", n)))
		failed = f.Dispatch(ctx, id, big)
	}
	if !errors.Is(failed, store.ErrUnavailable) || !errors.Is(failed, syscall.ENOSPC) {
		t.Fatalf("after %d: %v", n, failed)
	}
	must(t, os.Remove(ballast))
	for i := range n - 1 {
		if c, err := f.Get(ctx, fmt.Sprint("big", i), store.Of("p")); err != nil || c.Step != store.Dispatched {
			t.Errorf("%d was confirmed: %v", i, err)
		}
	}
	must(t, f.Dispatch(ctx, fmt.Sprint("big", n-1), big))
	must(t, f.Close())
	f = openFile(t, dir, boltstore.Options{})
	if calls, err := f.Recover(ctx, store.Abandoned, 100); len(calls) != n || err != nil {
		t.Errorf("%d calls of %d, %v", len(calls), n, err)
	}
}

// A file of version 1 has no index of notices, of the grants of a key, and of when those are over, and a
// table of what was owed. It answers as before, and is of version 2 once it was opened.
func TestFileOfVersion1(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	o := boltstore.Options{Now: c.now}
	f := openFile(t, dir, o)
	ended(t, f, newCall("1", "k1"))
	for _, id := range []string{"told", "waiting", "denied"} {
		asked(t, f, question(t, c, id, "p", fmt.Sprintf("%q", id), "refunds"))
	}
	for _, n := range claims(t, f, "denied", "told", "waiting") {
		if n.Approval.ID == "told" {
			must(t, f.SettleNotice(ctx, &n, approval.Notified(0).With(approval.Waiting), 0))
		}
	}
	denied, err := f.Approval(ctx, "denied")
	must(t, err)
	voted(t, f, denied, "ada", false)
	must(t, f.AddGrant(ctx, approval.Grant{ID: "grant_1", Key: "g", Until: c.now().Add(time.Hour)}))
	must(t, f.Close())
	db, err := bbolt.Open(filepath.Join(dir, boltstore.FileName), 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		var err error
		for _, index := range []string{"closing own", "news", "grants of a key", "lapsing"} {
			err = errors.Join(err, tx.DeleteBucket([]byte(index)))
		}
		notices := tx.Bucket([]byte("notices"))
		for _, id := range []string{"denied", "told", "waiting"} {
			err = errors.Join(err, notices.Put([]byte(id), bytes.Clone(notices.Get([]byte(id))[:2])))
		}
		owed, failed := tx.CreateBucket([]byte("owed"))
		must(t, failed)
		return errors.Join(err, owed.Put([]byte("1"), nil), tx.Bucket([]byte("about")).Put([]byte("version"), []byte("1")))
	}))
	must(t, db.Close())
	for range 2 {
		f = openFile(t, dir, o)
		if prior, err := f.Open(ctx, newCall("2", "k1")); prior == nil || string(prior.Answer.Result) != "r" || err != nil {
			t.Errorf("the key starts a second call: %+v, %v", prior, err)
		}
		if found, grants, err := f.Consents(ctx, "p", denied.Digest, []string{"g"}); len(found) != 1 || len(grants) != 1 || err != nil {
			t.Errorf("found %d, %d grants, %v", len(found), len(grants), err)
		}
		if live, grants, err := f.LiveApprovals(ctx); len(live) != 2 || grants != 1 || err != nil {
			t.Errorf("%d are live, %d grants, %v", len(live), grants, err)
		}
		claims(t, f, "denied", "waiting")
		must(t, f.Close())
	}
	if rows := rowsOf(t, filepath.Join(dir, boltstore.FileName), "about"); string(rows["about"]) != "2" {
		t.Errorf("the file is of version %q", rows["about"])
	}
	f = openFile(t, dir, o)
	c.advance(25 * time.Hour)
	if swept, err := f.Sweep(ctx, 10); swept != 5 || err != nil { // a call, three approvals and a grant
		t.Errorf("swept %d, %v", swept, err)
	}
}

func TestOneProcessHasTheFile(t *testing.T) {
	dir := t.TempDir()
	openFile(t, dir, boltstore.Options{})
	if _, err := boltstore.Open(dir, boltstore.Options{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v", err)
	}
}

// Whatever the file holds, opening it gives a store or an error, and a store
// has every call that was in it, as it was. An error is required where it
// follows from how the file is written: a beginning that is not ours, an end that is
// missing where something stands, and a record that was changed wherever it stands.
// Other damage may be in a page that nothing needs.
//
// The first two pages say which state holds, and are left as they are: where the one
// is damaged, the file is as it was before the last transaction, and nothing in it
// tells.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	f := openFile(t, dir, boltstore.Options{})
	const n = 200
	for i := range n {
		ended(t, f, newCall(fmt.Sprint("call", i), fmt.Sprint("key", i)))
	}
	must(t, f.Close())
	path := filepath.Join(dir, boltstore.FileName)
	rows := rowsOf(t, path, "calls", "answers", "keys")
	whole, err := os.ReadFile(path)
	must(t, err)
	page := os.Getpagesize()
	// The pages of n calls do not fit beside the first three pages.
	found := map[string][]byte{
		"zeros": make([]byte, len(whole)), "text": []byte("hello"), "a page": whole[:page], "three pages": whole[:3*page],
	}
	for table, row := range rows {
		b := bytes.ReplaceAll(whole, row, flipped(row))
		if bytes.Equal(b, whole) {
			t.Fatalf("no row of %s stands in the file", table)
		}
		found["a row of "+table] = b
	}
	damages := map[string][]byte{"empty": {}, "half": whole[:len(whole)/2], "a little": whole[:len(whole)-5000]}
	for i := range 60 {
		b := bytes.Clone(whole)
		at := 2*page + i*7919*64%(len(b)-2*page)
		for j := at; j < min(at+1+i, len(b)); j++ {
			b[j] ^= byte(1 << (i % 8))
		}
		damages[fmt.Sprint("flips at ", at)] = b
	}
	opened := func(content []byte) (*boltstore.Store, error) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, boltstore.FileName), content, 0o600))
		return boltstore.Open(dir, boltstore.Options{Wait: patient})
	}
	for name, content := range found {
		if f, err := opened(content); err == nil {
			t.Errorf("%s: nobody saw it", name)
			f.Close()
		}
	}
	refusals := 0
	for name, content := range damages {
		f, err := opened(content)
		if err != nil {
			refusals++
			continue
		}
		for i := range n {
			c, err := f.Get(ctx, fmt.Sprint("call", i), store.Of("p"))
			held := err == nil && string(c.Answer.Result) == "r" && c.Key == fmt.Sprint("key", i)
			if prior, openErr := f.Open(ctx, newCall("second", fmt.Sprint("key", i))); name != "empty" && (!held && err == nil || prior == nil && openErr == nil) {
				t.Errorf("%s: call %d is not what it was: %+v, %v", name, i, c, err)
				break
			}
		}
		f.Close()
	}
	t.Logf("%d of %d other damages were found", refusals, len(damages))
}

// rowsOf returns one row of each table as it stands in the file: of keys the key,
// which nothing else holds, of others the value.
func rowsOf(t *testing.T, path string, tables ...string) map[string][]byte {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	must(t, err)
	defer db.Close()
	rows := map[string][]byte{}
	must(t, db.View(func(tx *bbolt.Tx) error {
		for _, table := range tables {
			k, v := tx.Bucket([]byte(table)).Cursor().Last()
			if rows[table] = bytes.Clone(v); table == "keys" {
				rows[table] = bytes.Clone(k)
			}
		}
		return nil
	}))
	return rows
}

// flipped is a row of which one bit was changed.
func flipped(row []byte) []byte {
	b := bytes.Clone(row)
	b[len(b)/2] ^= 4
	return b
}

func TestNotARegularFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "elsewhere")
	must(t, os.WriteFile(target, nil, 0o600))
	if err := os.Symlink(target, filepath.Join(dir, boltstore.FileName)); err != nil {
		t.Skip("no links here")
	}
	if _, err := boltstore.Open(dir, boltstore.Options{}); err == nil {
		t.Error("followed a link")
	}
	if _, err := boltstore.Open(filepath.Join(dir, "absent"), boltstore.Options{}); err == nil {
		t.Error("opened a store in a folder that is not there")
	}
}

func TestClosedFile(t *testing.T) {
	f := openFile(t, t.TempDir(), boltstore.Options{})
	id := opened(t, f, newCall("1", "k"))
	must(t, f.Close())
	refused(t, f.Dispatch(ctx, id, once), store.ErrUnavailable)
	if _, err := f.Open(ctx, newCall("2", "k2")); err == nil {
		t.Error("opened a call in a closed store")
	}
	if _, err := f.Get(ctx, "0", store.Of("p")); err == nil {
		t.Error("read from a closed store")
	}
	if f.Close() == nil {
		t.Error("closed twice")
	}
}
