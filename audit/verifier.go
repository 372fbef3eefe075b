package audit

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/callgate/callgate/audit/checkpoint"
	"github.com/callgate/callgate/audit/internal/logfile"
)

// Verifier verifies the logs of one process or of several, each a chain of its own.
// The zero value checks what Verify checks.
type Verifier struct {
	// Keys are the keys whose checkpoints are trusted. With any, each chain must have
	// checkpoints: every record that they sign must be there, as it was signed. With
	// none, checkpoints are ignored.
	Keys []ed25519.PublicKey
	// CheckpointFile replaces the file beside the log: a copy that was kept elsewhere.
	// Empty is the file beside the log.
	CheckpointFile string
	// Partial lets a chain begin behind a record that a checkpoint signs: the files
	// before it were removed on purpose. It needs Keys.
	Partial bool
}

// Chain is the result for one chain.
type Chain struct {
	Report
	Files []string // oldest first
	// Corruption names the first record or checkpoint that is not as it was written;
	// nil if the chain is intact.
	Corruption  *CorruptionError
	ID          string // of the chain, as its checkpoints say; empty if they are ignored
	Checkpoints uint64 // number of intact checkpoints
	// SignedSeq is the last record that they cover. Somebody with the files and without
	// the key can change later records unnoticed.
	SignedSeq uint64

	before logfile.Link // the first record follows it
	first  logfile.Link // the first record; none where there is no file with one
}

// Verify checks the files, given oldest first for each chain. A folder holds one
// chain; a file of another folder belongs to the chain that it continues, or begins
// one if it begins with seq 1. An error says that a file cannot be read, or that the
// Verifier's fields contradict each other.
func (c Verifier) Verify(files ...string) ([]Chain, error) {
	switch {
	case len(files) == 0:
		return nil, errors.New("no audit file given")
	case len(c.Keys) == 0 && (c.Partial || c.CheckpointFile != ""):
		return nil, errors.New("without a public key no head can be verified: give the one of audit.sign_key (--public-key)")
	}
	chains := groupByChain(files)
	if len(chains) > 1 && c.CheckpointFile != "" {
		return nil, fmt.Errorf("%s is a file of one chain, and the files are of %d: verify each by itself", c.CheckpointFile, len(chains))
	}
	for i := range chains {
		err := c.verify(&chains[i])
		if err == nil {
			err = findCopy(chains[:i], &chains[i])
		}
		if err != nil && !errors.As(err, &chains[i].Corruption) {
			return nil, err
		}
	}
	return chains, nil
}

// groupByChain assigns the files to chains. A file that cannot be read is reported
// when its chain is verified.
func groupByChain(files []string) []Chain {
	var chains []Chain
	for _, name := range files {
		before, first := firstLink(name)
		at := chainOf(chains, name, before, first)
		if at < 0 {
			chains = append(chains, Chain{Files: []string{name}, before: before, first: first})
			continue
		}
		chain := &chains[at]
		chain.Files = append(chain.Files, name)
		if chain.first.Seq == 0 {
			chain.before, chain.first = before, first
		}
	}
	return chains
}

// firstLink returns the first record of a file and the link before it, if it can be
// read.
func firstLink(name string) (before, first logfile.Link) {
	before = logfile.Link{Hash: logfile.Genesis}
	f, err := logfile.OpenRead(name)
	if err != nil {
		return before, first
	}
	defer f.Close()
	enough := errors.New("one is enough")
	_, _, _ = logfile.EachLine(f, func(line []byte, _ int64) error {
		if at, prev, err := logfile.ParseLine(line); err == nil {
			before, first = logfile.Link{Seq: at.Seq - 1, Hash: prev}, at
		}
		return enough
	})
	return before, first
}

// chainOf returns which chain a file belongs to; -1 is a new one.
func chainOf(chains []Chain, name string, before, first logfile.Link) int {
	beside := func(f string) bool { return filepath.Dir(f) == filepath.Dir(name) }
	if i := slices.IndexFunc(chains, func(o Chain) bool { return slices.ContainsFunc(o.Files, beside) }); i >= 0 {
		return i
	}
	if first.Seq < 2 {
		return -1
	}
	return slices.IndexFunc(chains, func(o Chain) bool { return lastLinkOf(o.Files) == before })
}

// lastLinkOf returns the last record of the files, if it can be read.
func lastLinkOf(files []string) (end logfile.Link) {
	for _, name := range slices.Backward(files) {
		if end = lastLink(name); end.Seq > 0 {
			break
		}
	}
	return end
}

func lastLink(name string) (end logfile.Link) {
	f, err := logfile.OpenRead(name)
	if err != nil {
		return end
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return end
	}
	to, err := logfile.LineStart(f, info.Size())
	if err != nil || to == 0 {
		return end
	}
	from, err := logfile.LineStart(f, to-1)
	if err != nil {
		return end
	}
	end, _, err = logfile.LineAt(f, from, to)
	if err != nil {
		return logfile.Link{}
	}
	return end
}

// verify checks one chain, and its checkpoints if there are keys.
func (c Verifier) verify(chain *Chain) (err error) {
	from := logfile.Link{Hash: logfile.Genesis}
	var checkpoints *checkpoint.Reader
	if len(c.Keys) > 0 {
		name := c.CheckpointFile
		if name == "" {
			name = filepath.Join(filepath.Dir(chain.Files[len(chain.Files)-1]), checkpoint.FileName)
		}
		if checkpoints, err = checkpoint.OpenReader(name, c.Keys); err != nil {
			return err
		}
		defer checkpoints.Close()
		if c.Partial {
			from = chain.before
		}
		if err := checkpoints.SkipTo(from, chain.Files[0]); err != nil {
			return err
		}
	}
	report, line, err := scanFrom(from, func(_ []byte, at logfile.Link) error { return checkpoints.Compare(at) }, chain.Files)
	chain.Report = report
	if err == nil {
		err = checkpoints.CheckExhausted(chain.Files[len(chain.Files)-1], line, max(report.LastSeq, from.Seq))
	}
	if checkpoints != nil {
		chain.ID, chain.Checkpoints, chain.SignedSeq = checkpoints.Chain(), checkpoints.Verified(), checkpoints.SignedSeq()
	}
	return err
}

// findCopy finds a chain that begins as an earlier one does: one process writes one
// chain, so one of the two is a copy, or a part of a copy.
func findCopy(before []Chain, chain *Chain) error {
	for _, other := range before {
		if chain.first.Seq > 0 && chain.first == other.first || chain.ID != "" && chain.ID == other.ID {
			return &CorruptionError{File: chain.Files[0], Line: 1, Seq: chain.first.Seq,
				Reason: "belongs to the chain of " + other.Files[0] + " too: one is a copy"}
		}
	}
	return nil
}
