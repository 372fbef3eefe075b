package audit

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit/checkpoint"
	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/testkit/detector"
)

// testKey is the same in every run.
func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func publicOf(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// checked is the check with the keys of testKey.
func checked(keys ...byte) Verifier {
	var c Verifier
	for _, n := range keys {
		c.Keys = append(c.Keys, publicOf(testKey(n)))
	}
	return c
}

// held is one replica's folder, as it was written.
type held struct {
	dir   string
	files []string
	lines [][][]byte // of each file, each with its line end
	base  []uint64   // records before each file
	heads [][]byte
	signs []uint64 // seq of each head
}

// replicaOf lets a log write n records over several files, with many heads.
func replicaOf(t testing.TB, dir string, key byte, n int) *held {
	t.Helper()
	l := open(t, dir, Options{SignKey: testKey(key), RotateBytes: 6000, checkpointEvery: 5, Record: Arguments})
	for i, id := range ids(n) {
		r := sample(fmt.Sprintf("%s-%d-%s", filepath.Base(dir), key, id))
		r.Arguments = []byte(fmt.Sprintf(`{"hash":%d,"prev":"é"}`, i))
		if err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if i >= 4 { // let the signer keep pace, so that heads stand all over
			signedUpTo(t, l, uint64(i-3))
		}
	}
	mustClose(t, l)
	h := &held{dir: dir}
	var err error
	if h.files, err = Files(dir); err != nil {
		t.Fatal(err)
	}
	var before uint64
	for _, f := range h.files {
		lines := bytes.SplitAfter(contents(t, f), []byte("\n"))
		h.lines = append(h.lines, lines[:len(lines)-1])
		h.base = append(h.base, before)
		before += uint64(len(lines) - 1)
	}
	heads := bytes.SplitAfter(contents(t, filepath.Join(dir, checkpoint.FileName)), []byte("\n"))
	h.heads = heads[:len(heads)-1]
	for _, line := range h.heads {
		at, _, _, err := checkpoint.Parse(line[:len(line)-1])
		if err != nil {
			t.Fatal(err)
		}
		h.signs = append(h.signs, at.Seq)
	}
	if len(h.files) < 3 || len(h.heads) < 8 || h.signs[len(h.signs)-1] != uint64(n) {
		t.Fatalf("%d files and heads at %v: too few to say anything", len(h.files), h.signs)
	}
	return h
}

// restore writes the folder as it was.
func (h *held) restore(t testing.TB) {
	t.Helper()
	for i, f := range h.files {
		put(t, f, bytes.Join(h.lines[i], nil))
	}
	put(t, filepath.Join(h.dir, checkpoint.FileName), bytes.Join(h.heads, nil))
}

// without returns lines without the one at i.
func without(lines [][]byte, i int) [][]byte {
	return append(slices.Clone(lines[:i]), lines[i+1:]...)
}

func with(lines [][]byte, i int, line []byte) [][]byte {
	lines = slices.Clone(lines)
	lines[i] = line
	return lines
}

// spoilLine changes a line in one byte.
func spoilLine(random *rand.Rand, line []byte) (string, []byte) {
	p := random.IntN(len(line))
	switch random.IntN(3) {
	case 0:
		line = bytes.Clone(line)
		line[p] ^= 1 << random.IntN(8)
		return "flip of a bit", line
	case 1:
		b := byte(random.IntN(256))
		if b == '\n' && p == len(line)-1 { // the line would stand, and the next be empty
			b = ' '
		}
		return "insertion of a byte", bytes.Join([][]byte{line[:p], line[p:]}, []byte{b})
	}
	return "deletion of a byte", append(bytes.Clone(line[:p]), line[p+1:]...)
}

// 1,000 changes to one of three replicas, of several files each: every one is
// found, at the record that it touches first, and the other replicas hold.
func TestEveryChangeToReplicasIsFound(t *testing.T) {
	detector.OneGoroutine(t)
	t.Parallel()
	const records = 45
	changes := 1000
	if testing.Short() {
		changes = 200
	}
	root := t.TempDir()
	var replicas []*held
	var files []string
	for i := range 3 {
		r := replicaOf(t, filepath.Join(root, fmt.Sprint("gate-", i)), byte(1+i%2), records)
		replicas, files = append(replicas, r), append(files, r.files...)
	}
	check := checked(1, 2)
	random := rand.New(rand.NewPCG(5, 6))
	kinds, found := map[string]int{}, 0
	for i := range changes {
		at := random.IntN(len(replicas))
		r, other := replicas[at], replicas[(at+1)%len(replicas)]
		what, file, line, seq := r.spoil(t, random, other, i)
		kinds[what]++
		given := slices.DeleteFunc(slices.Clone(files), func(f string) bool { _, err := os.Stat(f); return err != nil })
		chains, err := check.Verify(given...)
		if err != nil || len(chains) != len(replicas) {
			t.Fatalf("%s: %d chains, %v", what, len(chains), err)
		}
		named := true
		for j, c := range chains {
			switch {
			case j != at && c.Corruption != nil:
				t.Errorf("%s in %s: %v", what, r.dir, c.Corruption)
				named = false
			case j == at && (c.Corruption == nil || c.Corruption.File != file || c.Corruption.Line != line || c.Corruption.Seq != seq):
				t.Errorf("%s at %s:%d, seq %d: %v", what, file, line, seq, c.Corruption)
				named = false
			}
		}
		if named {
			found++
		}
		r.restore(t)
	}
	t.Logf("%d of %d changes found at the right record: %v", found, changes, kinds)
	chains, err := check.Verify(files...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chains {
		if c.Corruption != nil || c.Records != records || c.SignedSeq != records || c.Checkpoints == 0 || len(c.ID) != 32 {
			t.Errorf("unchanged: %+v", c)
		}
	}
}

// spoil changes the replica on disk, and returns what belongs to the report.
func (h *held) spoil(t testing.TB, random *rand.Rand, other *held, kind int) (what, file string, line int64, seq uint64) {
	t.Helper()
	f := random.IntN(len(h.files))
	i := random.IntN(len(h.lines[f]))
	lines := slices.Clone(h.lines[f])
	file, line, seq = h.files[f], int64(i+1), h.base[f]+uint64(i)+1
	lastFile := f == len(h.files)-1
	missing := func(f int) (string, int64, uint64) { // where the chain continues that ends with file f
		return h.files[f], int64(len(h.lines[f]) + 1), h.base[f] + uint64(len(h.lines[f])) + 1
	}
	switch kind % 10 {
	case 0, 1:
		what, lines[i] = spoilLine(random, lines[i])
	case 2:
		what, lines = "deletion of a record", without(lines, i)
		if i == len(lines) && !lastFile {
			file, line = h.files[f+1], 1
		}
	case 3:
		what = "insertion of another replica's record"
		lines = slices.Insert(lines, i, other.lines[random.IntN(len(other.files))][0])
		if seq == 1 { // else it would begin as the other does
			lines[0] = []byte("{}\n")
		}
	case 4:
		what = "insertion of a record of this replica"
		copied := h.lines[random.IntN(len(h.files))][0]
		if bytes.Equal(copied, lines[i]) {
			i, line, seq = i+1, line+1, seq+1
		}
		lines = slices.Insert(lines, i, copied)
		if i == len(h.lines[f]) && !lastFile {
			file, line = h.files[f], int64(i+1)
		}
	case 5:
		what = "swap of two records"
		if len(lines) == 1 {
			lines[0] = []byte("{}\n")
			break
		}
		j := (i + 1) % len(lines)
		lines[i], lines[j] = lines[j], lines[i]
		first := min(i, j)
		line, seq = int64(first+1), h.base[f]+uint64(first)+1
	case 6:
		what = "truncation"
		for _, later := range h.files[f+1:] {
			if err := os.Remove(later); err != nil {
				t.Fatal(err)
			}
		}
		truncated := lines[i][:random.IntN(len(lines[i]))]
		lines = append(lines[:i], truncated)
	case 7:
		what = "deletion of a file"
		if err := os.Remove(h.files[f]); err != nil {
			t.Fatal(err)
		}
		if file, line, seq = missing(max(f-1, 0)); !lastFile {
			file, line, seq = h.files[f+1], 1, h.base[f]+1
		}
		return what, file, line, seq
	case 8:
		what = "swap of two files"
		g := (f + 1) % len(h.files)
		put(t, h.files[f], bytes.Join(h.lines[g], nil))
		put(t, h.files[g], bytes.Join(h.lines[f], nil))
		first := min(f, g)
		return what, h.files[first], 1, h.base[first] + 1
	case 9:
		what = "all from a record on written anew"
		h.rewrite(t, f, i)
		seq = h.signs[slices.IndexFunc(h.signs, func(s uint64) bool { return s >= seq })]
		for h.base[f]+uint64(len(h.lines[f])) < seq {
			f++
		}
		return what, h.files[f], int64(seq - h.base[f]), seq
	}
	put(t, h.files[f], bytes.Join(lines, nil))
	return what, file, line, seq
}

// rewrite replaces a record, and seals it and all that follow as the log does: anyone
// without a key can do that.
func (h *held) rewrite(t testing.TB, file, line int) {
	t.Helper()
	at := logfile.Link{Hash: logfile.Genesis}
	for f := range h.files {
		var buf []byte
		for i, old := range h.lines[f] {
			if f < file || f == file && i < line {
				was, err := at.Next(old[:len(old)-1])
				if err != nil {
					t.Fatal(err)
				}
				buf, at = append(buf, old...), was
				continue
			}
			body, err := encode(sample("forged"), Digest)
			if err != nil {
				t.Fatal(err)
			}
			buf, at = at.Seal(buf, body)
		}
		put(t, h.files[f], buf)
	}
}

// The records after the last head are the gap: cut off there, the chain holds; cut off
// before, it does not.
func TestTruncationIsFoundUpToTheLastHead(t *testing.T) {
	r := replicaOf(t, filepath.Join(t.TempDir(), "gate"), 1, 40)
	kept := len(r.signs) / 2
	signed := r.signs[kept-1]
	elsewhere := filepath.Join(t.TempDir(), "copy")
	put(t, elsewhere, bytes.Join(r.heads[:kept], nil))
	check := checked(1)
	check.CheckpointFile = elsewhere
	for cut := range uint64(40) {
		r.restore(t)
		var given []string
		for f, name := range r.files {
			if r.base[f] > cut {
				break
			}
			given = append(given, name)
			put(t, name, bytes.Join(r.lines[f][:min(uint64(len(r.lines[f])), cut-r.base[f])], nil))
		}
		chains, err := check.Verify(given...)
		if err != nil || len(chains) != 1 {
			t.Fatalf("%+v, %v", chains, err)
		}
		b := chains[0].Corruption
		if cut >= signed {
			if b != nil || chains[0].SignedSeq != signed || chains[0].LastSeq != cut {
				t.Errorf("cut behind seq %d, signed up to %d: %v", cut, signed, b)
			}
			continue
		}
		if b == nil || b.Seq != cut+1 || !strings.HasPrefix(b.Reason, "is missing: copy:") {
			t.Errorf("cut behind seq %d, signed up to %d: %v", cut, signed, b)
		}
	}
}

// Every change to the file of heads but a cut at its end is found there.
func TestEveryChangeToHeadsIsFound(t *testing.T) {
	t.Parallel()
	r := replicaOf(t, filepath.Join(t.TempDir(), "gate"), 1, 40)
	name := filepath.Join(r.dir, checkpoint.FileName)
	foreign := replicaOf(t, filepath.Join(t.TempDir(), "other"), 1, 40)
	random := rand.New(rand.NewPCG(7, 8))
	changes := 500
	if testing.Short() {
		changes = 100
	}
	for i := range changes {
		at := random.IntN(len(r.heads) - 1)
		heads, want := slices.Clone(r.heads), int64(at+1)
		var what string
		switch i % 5 {
		case 0, 1:
			what, heads[at] = spoilLine(random, heads[at])
		case 2:
			what, heads = "deletion of a head", without(heads, at)
		case 3:
			what = "swap of two heads"
			heads[at], heads[at+1] = heads[at+1], heads[at]
		case 4:
			what, at = "another chain's head", at+1
			heads, want = with(heads, at, foreign.heads[min(at, len(foreign.heads)-1)]), int64(at+1)
		}
		put(t, name, bytes.Join(heads, nil))
		chains, err := checked(1).Verify(r.files...)
		if err != nil {
			t.Fatal(err)
		}
		if b := chains[0].Corruption; b == nil || b.File != name || b.Line != want || b.Seq != 0 {
			t.Errorf("%s at line %d: %v", what, want, b)
		}
	}
	for what, change := range map[string]func() error{
		"removed": func() error { return os.Remove(name) },
		"emptied": func() error { return os.WriteFile(name, nil, 0o600) },
		"without its first": func() error {
			return os.WriteFile(name, bytes.Join(r.heads[1:], nil), 0o600)
		},
		"torn before the first line ends": func() error { return os.WriteFile(name, r.heads[0][:100], 0o600) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		chains, err := checked(1).Verify(r.files...)
		if err != nil {
			t.Fatal(err)
		}
		if b := chains[0].Corruption; b == nil || b.File != name || b.Line != 1 {
			t.Errorf("%s: %v", what, b)
		}
	}
	if chains, err := (Verifier{}).Verify(r.files...); err != nil || chains[0].Corruption != nil || chains[0].ID != "" {
		t.Errorf("without a key, heads were looked at: %+v, %v", chains, err)
	}
}

func TestHeadsOfAnotherKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gate")
	r := replicaOf(t, dir, 1, 30)
	for name, c := range map[string]struct {
		keys  []byte
		holds bool
	}{"the key": {[]byte{1}, true}, "another": {[]byte{2}, false}, "both": {[]byte{2, 1}, true}} {
		chains, err := checked(c.keys...).Verify(r.files...)
		if err != nil || (chains[0].Corruption == nil) != c.holds {
			t.Errorf("%s: %+v, %v", name, chains, err)
		}
	}
	// The key is changed: both are needed from then on, and the chain is the same.
	l := open(t, dir, Options{SignKey: testKey(2)})
	mustAppend(t, l, "new")
	mustClose(t, l)
	for name, c := range map[string]struct {
		keys  []byte
		holds bool
	}{"the old": {[]byte{1}, false}, "the new": {[]byte{2}, false}, "both": {[]byte{1, 2}, true}} {
		chains, err := checked(c.keys...).Verify(r.files...)
		if err != nil || (chains[0].Corruption == nil) != c.holds || c.holds && chains[0].SignedSeq != 31 {
			t.Errorf("after a change, %s: %+v, %v", name, chains, err)
		}
	}
}

// A head whose signature is another's key under the name of the right one.
func TestAForgedHead(t *testing.T) {
	r := replicaOf(t, filepath.Join(t.TempDir(), "gate"), 1, 30)
	last := len(r.heads) - 1
	h, _, _, err := checkpoint.Parse(r.heads[last][:len(r.heads[last])-1])
	if err != nil {
		t.Fatal(err)
	}
	h.Seq, h.Hash = h.Seq-1, logfile.Hash([]byte(strings.Repeat("a", logfile.HexLen)))
	forged, err := h.Sign(testKey(2))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(r.dir, checkpoint.FileName), bytes.Join(with(r.heads, last, forged), nil))
	chains, err := checked(1, 2).Verify(r.files...)
	if err != nil || chains[0].Corruption == nil || chains[0].Corruption.Line != int64(last+1) || !strings.Contains(chains[0].Corruption.Reason, "does not have its signature") {
		t.Errorf("%+v, %v", chains, err)
	}
}

// Heads that begin in the middle of a chain prove nothing, whichever key signed them.
func TestHeadsThatDoNotBeginWithTheChain(t *testing.T) {
	r := replicaOf(t, filepath.Join(t.TempDir(), "gate"), 1, 40)
	var heads [][]byte
	for _, line := range r.heads[1:] {
		h, _, _, err := checkpoint.Parse(line[:len(line)-1])
		if err != nil {
			t.Fatal(err)
		}
		h.Number--
		second, err := h.Sign(testKey(1))
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, second)
	}
	name := filepath.Join(r.dir, checkpoint.FileName)
	put(t, name, bytes.Join(heads, nil))
	partial := checked(1)
	partial.Partial = true
	for i := range r.files {
		chains, err := partial.Verify(r.files[i:]...)
		if err != nil || chains[0].Corruption == nil || chains[0].Corruption.File != name || chains[0].Corruption.Line != 1 {
			t.Errorf("from file %d: %+v, %v", i, chains, err)
		}
	}
}

// A folder put in another's place is a copy where both are given.
func TestACopiedReplicaIsFound(t *testing.T) {
	root := t.TempDir()
	first := replicaOf(t, filepath.Join(root, "gate-0"), 1, 40)
	copied := filepath.Join(root, "gate-1")
	if err := os.CopyFS(copied, os.DirFS(first.dir)); err != nil {
		t.Fatal(err)
	}
	files, err := Files(copied)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		check Verifier
		files []string
	}{"the chain alone": {Verifier{}, files}, "with heads": {checked(1), files}, "its newer files": {Verifier{Keys: checked(1).Keys, Partial: true}, files[1:]}} {
		chains, err := c.check.Verify(append(slices.Clone(first.files), c.files...)...)
		if err != nil || len(chains) != 2 || chains[0].Corruption != nil || chains[1].Corruption == nil || !strings.HasSuffix(chains[1].Corruption.Reason, "one is a copy") {
			t.Errorf("%s: %+v, %v", name, chains, err)
		}
	}
}

// The oldest files may be missing where a head signs their end, if that is said.
func TestAPartialChain(t *testing.T) {
	r := replicaOf(t, filepath.Join(t.TempDir(), "gate"), 1, 40)
	partial := checked(1)
	partial.Partial = true
	for f := range r.files {
		chains, err := partial.Verify(r.files[f:]...)
		if err != nil || chains[0].Corruption != nil || chains[0].FirstSeq != r.base[f]+1 || chains[0].LastSeq != 40 || chains[0].Records != 40-r.base[f] {
			t.Errorf("from file %d: %+v, %v", f, chains, err)
		}
		if chains, err := checked(1).Verify(r.files[f:]...); f > 0 && (err != nil || chains[0].Corruption == nil || chains[0].Corruption.Line != 1 || chains[0].Corruption.Seq != 1) {
			t.Errorf("from file %d without leave: %+v, %v", f, chains, err)
		}
	}
	// Cut at a record that no head signs.
	i := 0
	for slices.Contains(r.signs, r.base[1]+uint64(i)) {
		i++
	}
	put(t, r.files[1], bytes.Join(r.lines[1][i:], nil))
	chains, err := partial.Verify(r.files[1:]...)
	if err != nil || chains[0].Corruption == nil || chains[0].Corruption.Line != 1 || !strings.Contains(chains[0].Corruption.Reason, "a head signs") {
		t.Errorf("%+v, %v", chains, err)
	}
}

func TestCheckRefusesWhatMakesNoSense(t *testing.T) {
	root := t.TempDir()
	a, b := replicaOf(t, filepath.Join(root, "a"), 1, 40), replicaOf(t, filepath.Join(root, "b"), 1, 40)
	heads := filepath.Join(a.dir, checkpoint.FileName)
	one := checked(1)
	one.CheckpointFile = heads
	for name, c := range map[string]struct {
		check Verifier
		files []string
	}{
		"no file": {checked(1), nil}, "heads without a key": {Verifier{CheckpointFile: heads}, a.files}, "partial without a key": {Verifier{Partial: true}, a.files},
		"one file of heads for two chains": {one, append(slices.Clone(a.files), b.files...)},
		"a missing file":                   {checked(1), append(slices.Clone(a.files), filepath.Join(a.dir, "audit-none.jsonl"))},
	} {
		var broken *CorruptionError
		if chains, err := c.check.Verify(c.files...); err == nil || errors.As(err, &broken) || chains != nil {
			t.Errorf("%s: %+v, %v", name, chains, err)
		}
	}
}

// Files of one chain may lie in an archive, and replicas' in folders of their own.
func TestFoldersTellChainsApart(t *testing.T) {
	root := t.TempDir()
	a, b := replicaOf(t, filepath.Join(root, "a"), 1, 40), replicaOf(t, filepath.Join(root, "b"), 2, 40)
	archive := filepath.Join(root, "archive", filepath.Base(a.files[0]))
	if err := os.MkdirAll(filepath.Dir(archive), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(a.files[0], archive); err != nil {
		t.Fatal(err)
	}
	files := append(append([]string{archive}, b.files...), a.files[1:]...)
	chains, err := checked(1, 2).Verify(files...)
	if err != nil || len(chains) != 2 || chains[0].Corruption != nil || chains[1].Corruption != nil || chains[0].Records != 40 || chains[1].Records != 40 {
		t.Errorf("%+v, %v", chains, err)
	}
}
