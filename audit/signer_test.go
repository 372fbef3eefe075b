package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit/checkpoint"
	"github.com/callgate/callgate/audit/internal/logfile"
)

// signedUpTo waits until a head covers seq.
func signedUpTo(t testing.TB, l *Log, seq uint64) {
	t.Helper()
	for end := time.Now().Add(patient); l.signer.SignedSeq() < seq; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("signed up to seq %d, want %d", l.signer.SignedSeq(), seq)
		}
	}
}

// disks are the two files of a log that signs, in memory.
type disks struct{ log, heads memory }

func (d *disks) open(path string, flags int) (logfile.File, error) {
	if filepath.Base(path) == checkpoint.FileName {
		return d.heads.open(path, flags)
	}
	return d.log.open(path, flags)
}

// saved writes both to a folder and returns the log's name.
func (d *disks) saved(t testing.TB) string {
	t.Helper()
	name := d.log.saved(t)
	d.heads.mu.Lock()
	defer d.heads.mu.Unlock()
	put(t, filepath.Join(filepath.Dir(name), checkpoint.FileName), d.heads.content)
	return name
}

// reports collects what Report hears.
type reports struct {
	mu    sync.Mutex
	lines []string
}

func (r *reports) report(p Component, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf("%s %v", p, err != nil))
}

func (r *reports) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// mustHold verifies files of one chain with its heads.
func mustHold(t testing.TB, files ...string) Chain {
	t.Helper()
	chains, err := checked(1).Verify(files...)
	if err != nil || len(chains) != 1 || chains[0].Corruption != nil {
		t.Fatalf("%+v, %v", chains, err)
	}
	return chains[0]
}

func TestHeadsAreWrittenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disks{}
		l := open(t, t.TempDir(), Options{open: d.open, SignKey: testKey(1), checkpointEvery: 4})
		written := func(heads int, signed uint64) {
			t.Helper()
			synctest.Wait()
			if n := bytes.Count(d.heads.content, []byte("\n")); n != heads || l.signer.SignedSeq() != signed {
				t.Fatalf("%d heads up to seq %d, want %d up to %d", n, l.signer.SignedSeq(), heads, signed)
			}
		}
		written(1, 0)
		mustAppend(t, l, "1")
		time.Sleep(checkpoint.Interval - time.Millisecond)
		written(1, 0)
		time.Sleep(time.Millisecond)
		written(2, 1)
		time.Sleep(time.Hour) // nothing is new
		written(2, 1)
		mustAppend(t, l, "2", "3", "4")
		written(2, 1)
		mustAppend(t, l, "5")
		written(3, 5)
		mustAppend(t, l, "6")
		mustClose(t, l)
		written(4, 6)
		if c := mustHold(t, d.saved(t)); c.Checkpoints != 4 || c.SignedSeq != 6 {
			t.Errorf("%+v", c)
		}
	})
}

// Heads that cannot be written refuse nothing for a while, and then everything,
// until they can.
func TestHeadsThatFail(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full here: %v", err)
	}
	defer full.Close()
	for name, c := range map[string]struct {
		cause  error
		inject func(d *disks)
	}{
		"sync error": {syscall.EIO, func(d *disks) { d.heads.onSync = func() error { return syscall.EIO } }},
		"no space":   {syscall.ENOSPC, func(d *disks) { d.heads.onWrite = full.Write }},
		"half a line": {syscall.ENOSPC, func(d *disks) {
			d.heads.onWrite = func(p []byte) (int, error) { return len(p) / 2, syscall.ENOSPC }
		}},
		"panic": {nil, func(d *disks) { d.heads.onSync = func() error { panic("disk driver") } }},
		"nothing can be opened": {syscall.EMFILE, func(d *disks) {
			d.heads.onSync = func() error { return syscall.EIO }
			d.heads.onOpen = func() error { return syscall.EMFILE }
		}},
		"another's bytes": {nil, func(d *disks) {
			d.heads.onWrite = func(p []byte) (int, error) {
				d.heads.content = append(d.heads.content, '\n')
				return len(p), nil
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, received := &disks{}, &reports{}
				l := open(t, t.TempDir(), Options{open: d.open, SignKey: testKey(1), OnDegraded: received.report})
				mustAppend(t, l, "before")
				time.Sleep(checkpoint.Interval)
				synctest.Wait()
				c.inject(d)
				mustAppend(t, l, "a")
				time.Sleep(checkpoint.Grace)
				synctest.Wait()
				mustAppend(t, l, "b")
				time.Sleep(time.Second)
				synctest.Wait()
				if got := received.heard(); !slices.Equal(got, []string{"heads true"}) {
					t.Errorf("the operator heard %q", got)
				}
				for range 3 {
					err := l.Append(t.Context(), sample("refused"))
					wantUnavailable(t, err)
					if c.cause != nil && !errors.Is(err, c.cause) || !strings.Contains(err.Error(), "no head could be signed") {
						t.Errorf("the operator does not learn why: %v", err)
					}
				}
				synctest.Wait()
				d.heads.onWrite, d.heads.onSync, d.heads.onOpen = nil, nil, nil
				l.signer.SignedSeq() // its lock shows the signer that they are
				time.Sleep(logfile.MaxPause)
				synctest.Wait()
				mustAppend(t, l, "c")
				mustClose(t, l)
				if got := received.heard(); !slices.Equal(got, []string{"heads true", "heads false"}) {
					t.Errorf("the operator heard %q", got)
				}
				name := d.saved(t)
				if c := mustHold(t, name); c.SignedSeq != 4 || c.LastSeq != 4 {
					t.Errorf("%+v", c)
				}
				if got := calls(t, name); !slices.Equal(got, []string{"before", "a", "b", "c"}) {
					t.Errorf("the log holds %q", got)
				}
			})
		})
	}
}

// A caller that leaves while a batch is with the disk takes its record along: no head
// stands for it.
func TestNoHeadClaimsARecordThatWasTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disks{}
		l := open(t, t.TempDir(), Options{open: d.open, SignKey: testKey(1), checkpointEvery: 1, Wait: brief})
		goOn := make(chan struct{})
		d.log.onSync = func() error { <-goOn; return nil }
		var wg sync.WaitGroup
		add := func(id string, accepted bool) {
			wg.Go(func() {
				if err := l.Append(t.Context(), sample(id)); (err == nil) != accepted {
					t.Errorf("%s: %v", id, err)
				}
			})
			synctest.Wait()
		}
		add("first", true)
		time.Sleep(100 * time.Millisecond)
		add("early", false)
		time.Sleep(100 * time.Millisecond)
		add("late", true)
		// The two go to disk at 200 ms. The early one leaves at 350 ms, the sync ends
		// at 400 ms, and the late one would leave at 450 ms.
		d.log.onSync = func() error { d.log.onSync = nil; time.Sleep(200 * time.Millisecond); return nil }
		close(goOn)
		wg.Wait()
		mustClose(t, l)
		name := d.saved(t)
		if got := calls(t, name); !slices.Equal(got, []string{"first", "late"}) {
			t.Errorf("the log holds %q", got)
		}
		if c := mustHold(t, name); c.SignedSeq != 2 {
			t.Errorf("%+v", c)
		}
	})
}

// Heads that another changed are not built upon after a failure, and not repaired.
func TestHeadsThatAnotherChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, received := &disks{}, &reports{}
		l := open(t, t.TempDir(), Options{open: d.open, SignKey: testKey(1), checkpointEvery: 1, OnDegraded: received.report})
		d.heads.onSync = func() error {
			d.heads.onSync = nil
			d.heads.content[20] ^= 1
			return syscall.EIO
		}
		mustAppend(t, l, "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		wantUnavailable(t, l.Append(t.Context(), sample("refused")))
		d.heads.content[20] ^= 1
		l.signer.SignedSeq() // its lock shows the signer that they are
		time.Sleep(logfile.MaxPause)
		synctest.Wait()
		mustAppend(t, l, "b")
		mustClose(t, l)
		if c := mustHold(t, d.saved(t)); c.SignedSeq != 2 {
			t.Errorf("%+v", c)
		}
		if got := received.heard(); !slices.Equal(got, []string{"heads true", "heads false"}) {
			t.Errorf("the operator heard %q", got)
		}
	})
}

// However many records come, a file of heads that fails is not tried all the time.
func TestAttemptsAtHeadsAreSpacedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disks{}
		l := open(t, t.TempDir(), Options{open: d.open, SignKey: testKey(1), checkpointEvery: 1})
		d.heads.onSync = func() error { return syscall.EIO }
		d.heads.onOpen = func() error { return syscall.EIO }
		for range 1000 {
			mustAppend(t, l, "a")
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		// 10 s with a pause of at most 1 s, after 10, 20, 40, … ms.
		if d.heads.opens < 10 || d.heads.opens > 20 {
			t.Errorf("%d attempts in 10 s", d.heads.opens)
		}
		if err := l.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close: %v", err)
		}
	})
}

// A disk of heads that never answers holds up no record until the bound, and
// Close no longer than its own.
func TestHeadsThatBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disks{}
		l := open(t, t.TempDir(), Options{open: d.open, SignKey: testKey(1), Wait: brief})
		goOn := make(chan struct{})
		d.heads.onSync = func() error { <-goOn; return nil }
		began := time.Now()
		mustAppend(t, l, "a")
		time.Sleep(checkpoint.Interval)
		synctest.Wait()
		mustAppend(t, l, "b", "c")
		if took := time.Since(began); took != checkpoint.Interval {
			t.Errorf("the records took %v", took-checkpoint.Interval)
		}
		time.Sleep(checkpoint.Grace)
		wantUnavailable(t, l.Append(t.Context(), sample("refused")))
		began = time.Now()
		if err := l.Close(); !errors.Is(err, logfile.ErrBlocked) {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(began); took != 3*brief {
			t.Errorf("Close took %v", took)
		}
		close(goOn)
		mustClose(t, l)
		if c := mustHold(t, d.saved(t)); c.SignedSeq != 3 || c.LastSeq != 3 {
			t.Errorf("%+v", c)
		}
	})
}

func TestCloseSaysThatTheLastHeadIsMissing(t *testing.T) {
	d := &disks{}
	l := open(t, t.TempDir(), Options{open: d.open, SignKey: testKey(1)})
	mustAppend(t, l, "a")
	d.heads.onSync = func() error { return syscall.EIO }
	if err := l.Close(); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "seq 0 have no signed head") {
		t.Errorf("Close: %v", err)
	}
}

// Faults in both files, under load: whenever the bytes of a head reach its file,
// the record that it signs is durable.
func TestNoHeadClaimsWhatIsNotDurable(t *testing.T) {
	t.Parallel()
	d := &disks{}
	random := rand.New(rand.NewPCG(9, 10))
	var mu sync.Mutex
	whole := true // while the log is opened
	fault := func(one int) func() error {
		return func() error {
			mu.Lock()
			defer mu.Unlock()
			if !whole && random.IntN(one) == 0 {
				return syscall.EIO
			}
			return nil
		}
	}
	setWhole := func(now bool) {
		mu.Lock()
		defer mu.Unlock()
		whole = now
	}
	d.log.onSync, d.heads.onSync = fault(40), fault(3)
	claims := 0
	d.heads.onWrite = func(p []byte) (int, error) {
		d.log.mu.Lock()
		durable := bytes.Clone(d.log.durable)
		d.log.mu.Unlock()
		for line := range bytes.Lines(p) {
			h, _, _, err := checkpoint.Parse(line[:len(line)-1])
			if err != nil || h.Seq > 0 && !bytes.Contains(durable, []byte(logfile.HashPrefix[1:]+h.Hash.String()+logfile.LineSuffix)) {
				t.Errorf("a head signs seq %d, which is not durable (%v)", h.Seq, err)
			}
			claims++
		}
		return len(p), nil
	}
	l := open(t, t.TempDir(), Options{open: d.open, SignKey: testKey(1), checkpointEvery: 3, batch: 4})
	setWhole(false)
	var wg sync.WaitGroup
	var accepted [4]int
	for w := range accepted {
		wg.Go(func() {
			for i := range 1000 {
				if l.Append(context.Background(), sample(fmt.Sprint(w, "-", i))) == nil {
					accepted[w]++
				}
			}
		})
	}
	wg.Wait()
	setWhole(true)
	for l.Append(context.Background(), sample("last")) != nil {
		time.Sleep(logfile.MinPause)
	}
	mustClose(t, l)
	c := mustHold(t, d.saved(t))
	if want := uint64(accepted[0] + accepted[1] + accepted[2] + accepted[3] + 1); c.LastSeq != want || c.SignedSeq != want || claims == 0 {
		t.Errorf("%+v, want %d records", c, want)
	}
	t.Logf("%d records, %d heads tried, %d there", c.Records, claims, c.Checkpoints)
}

// The records that the last head signs must be present before the log continues.
func TestOpenRefusesALogThatHeadsDoNotConfirm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil   func(t *testing.T, r *held)
		message string
	}{
		"heads removed":            {func(t *testing.T, r *held) { os.Remove(filepath.Join(r.dir, checkpoint.FileName)) }, "no signed head"},
		"heads emptied":            {func(t *testing.T, r *held) { put(t, filepath.Join(r.dir, checkpoint.FileName), nil) }, "no signed head"},
		"the last head altered":    {func(t *testing.T, r *held) { flipLast(t, filepath.Join(r.dir, checkpoint.FileName), 150) }, "the last line"},
		"heads are something else": {func(t *testing.T, r *held) { put(t, filepath.Join(r.dir, checkpoint.FileName), []byte("{}\n")) }, "is not a signed head"},
		"a line without end": {func(t *testing.T, r *held) {
			put(t, filepath.Join(r.dir, checkpoint.FileName), append(bytes.Repeat([]byte("x"), 5000), '\n'))
		}, "is not a signed head"},
		"the log cut": {func(t *testing.T, r *held) {
			last := len(r.files) - 1
			put(t, r.files[last], bytes.Join(r.lines[last][:len(r.lines[last])-1], nil))
		}, "records are missing"},
		"the newest file removed":   {func(t *testing.T, r *held) { os.Remove(r.files[len(r.files)-1]) }, "records are missing"},
		"every file removed":        {func(t *testing.T, r *held) { removeAll(r.files) }, "records are missing"},
		"the last record rewritten": {func(t *testing.T, r *held) { r.rewrite(t, len(r.files)-1, len(r.lines[len(r.files)-1])-1) }, "is not the record"},
		"an old record rewritten, and one more": {func(t *testing.T, r *held) {
			last := len(r.files) - 1
			r.lines[last] = append(r.lines[last], r.lines[last][0])
			r.rewrite(t, 0, 3)
		}, "is not the record"},
		"a pipe": {func(t *testing.T, r *held) {
			name := filepath.Join(r.dir, checkpoint.FileName)
			os.Remove(name)
			if err := syscall.Mkfifo(name, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "expected a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			r := replicaOf(t, filepath.Join(t.TempDir(), "gate"), 1, 40)
			c.spoil(t, r)
			for range 2 { // refusing changes nothing
				l, err := Open(r.dir, Options{SignKey: testKey(1)})
				if err == nil {
					l.Close()
					t.Fatal("it opened")
				}
				if !strings.Contains(err.Error(), c.message) {
					t.Errorf("it says %v", err)
				}
			}
		})
	}
}

func flipLast(t *testing.T, name string, back int) {
	t.Helper()
	content := contents(t, name)
	content[len(content)-back] ^= 1
	put(t, name, content)
}

func removeAll(names []string) {
	for _, n := range names {
		os.Remove(n)
	}
}

// Records that no head covers are signed when the log is opened with the key:
// after a crash, and after a time without the key.
func TestALogIsSignedFromWhereItsHeadsEnd(t *testing.T) {
	r := replicaOf(t, filepath.Join(t.TempDir(), "gate"), 1, 40)
	heads := filepath.Join(r.dir, checkpoint.FileName)
	for kept := 1; kept <= len(r.heads); kept++ {
		r.restore(t)
		truncated := append(bytes.Join(r.heads[:kept], nil), r.heads[0][:kept]...)
		put(t, heads, truncated)
		l := open(t, r.dir, Options{SignKey: testKey(1)})
		signedUpTo(t, l, 40)
		mustClose(t, l)
		if c := mustHold(t, r.files...); c.SignedSeq != 40 {
			t.Fatalf("%d heads kept: %+v", kept, c)
		}
		// The last file can be verified without those before it.
		partial := checked(1)
		partial.Partial = true
		if chains, err := partial.Verify(r.files[len(r.files)-1]); err != nil || chains[0].Corruption != nil {
			t.Fatalf("%d heads kept: %+v, %v", kept, chains, err)
		}
	}
	r.restore(t)
	l := open(t, r.dir, Options{RotateBytes: 3000})
	mustAppend(t, l, ids(20)...)
	mustClose(t, l)
	l = open(t, r.dir, Options{SignKey: testKey(1)})
	signedUpTo(t, l, 60)
	mustClose(t, l)
	files, err := Files(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	if c := mustHold(t, files...); c.SignedSeq != 60 || len(files) < len(r.files)+2 {
		t.Errorf("%+v", c)
	}
}

func TestKeysAreReadStrictly(t *testing.T) {
	private, public, err := checkpoint.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := checkpoint.ParseSignKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := checkpoint.ParsePublicKey(public)
	if err != nil || !pub.Equal(publicOf(key)) || len(checkpoint.KeyID(pub)) != 16 {
		t.Fatalf("%v", err)
	}
	if _, err := checkpoint.ParseSignKey(bytes.TrimSpace(private)); err != nil {
		t.Errorf("without its last line end: %v", err)
	}
	rsa := []byte("-----BEGIN PRIVATE KEY-----\nhunter2hunter2\n-----END PRIVATE KEY-----\n")
	for name, text := range map[string][]byte{"nothing": nil, "a public key": public, "no PEM": []byte("hunter2"), "no key": rsa, "two": slices.Concat(private, private), "cut": private[:80]} {
		if _, err := checkpoint.ParseSignKey(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string][]byte{"nothing": nil, "a private key": private, "two": slices.Concat(public, public), "cut": public[:60]} {
		if _, err := checkpoint.ParsePublicKey(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(t.TempDir(), Options{SignKey: key[:5]}); err == nil {
		t.Error("a key of five bytes was taken")
	}
}

func FuzzReadHead(f *testing.F) {
	line, err := checkpoint.Checkpoint{Number: 1, Chain: strings.Repeat("a", 32), Hash: logfile.Genesis, Time: noon, Key: checkpoint.KeyID(publicOf(testKey(1)))}.Sign(testKey(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line[:len(line)-1])
	f.Add(bytes.Replace(line[:len(line)-1], []byte(`"seq":0`), []byte(`"seq": 0`), 1))
	f.Add([]byte(`{"head":1,"signature":""}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, signed, signature, err := checkpoint.Parse(line)
		if err != nil {
			return
		}
		if len(signed)+len(signature) > len(line) {
			t.Fatal("it signs more than there is")
		}
		// Whatever is read is written so again: no two lines say the same.
		second, err := h.Sign(testKey(1))
		if err != nil || !bytes.HasPrefix(second, signed) || len(second) != len(line)+1 {
			t.Fatalf("%q became %q, %v", line, second, err)
		}
	})
}
