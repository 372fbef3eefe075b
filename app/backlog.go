package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
)

// readBacklog reads from the audit log of a folder what its processes have left. It is
// read as it is: whether it was changed is for audit verify to tell.
func readBacklog(dir string) (gateway.Backlog, error) {
	open := map[string][]byte{}
	var order []string
	err := visitCalls(dir, func(decided bool, id string, line []byte) {
		switch {
		case !decided:
			delete(open, id)
		case bytes.Contains(line, verdictMark):
			open[id] = bytes.Clone(line)
			order = append(order, id)
		}
		if len(order) > 2*len(open)+4096 { // most of them have ended
			order = stillOpen(order, open)
		}
	})
	if err != nil {
		return gateway.Backlog{}, fmt.Errorf("audit log: %w", err)
	}
	past := gateway.Backlog{Ended: func(ids []string) (map[string]bool, error) { return endedCalls(dir, ids) }}
	for _, id := range stillOpen(order, open) {
		var r audit.Record
		if err := json.Unmarshal(open[id], &r); err != nil {
			return gateway.Backlog{}, fmt.Errorf("audit log: the decision of a call cannot be read: %w", err)
		}
		past.Open = append(past.Open, r)
	}
	return past, nil
}

// stillOpen are the ids that are still open, each once.
func stillOpen(order []string, open map[string][]byte) []string {
	kept := make([]string, 0, len(open))
	seen := make(map[string]bool, len(open))
	for _, id := range order {
		if _, stands := open[id]; stands && !seen[id] {
			kept, seen[id] = append(kept, id), true
		}
	}
	return kept
}

// maxListings is how often the files are read that a rotation may move meanwhile.
const maxListings = 3

// endedCalls tells which of some calls have an outcome.
func endedCalls(dir string, ids []string) (map[string]bool, error) {
	asked, ended := make(map[string]bool, len(ids)), map[string]bool{}
	for _, id := range ids {
		asked[id] = true
	}
	// A rotation gives a file another name: one that took place meanwhile may have
	// kept it from being read, or had it read twice, which does no harm.
	for range maxListings {
		before, err := audit.Files(dir)
		if err != nil {
			return nil, err
		}
		err = visitCalls(dir, func(decided bool, id string, _ []byte) {
			if !decided && asked[id] {
				ended[id] = true
			}
		})
		if after, again := audit.Files(dir); again == nil && slices.Equal(before, after) {
			return ended, err
		}
	}
	return nil, errors.New("the files of the audit log change faster than they can be read")
}

// A line has its members in one order, and a quotation mark within a value is
// escaped: these stand only where they mean what they say.
var (
	decisionMark = []byte(`,"event":"decision","mode":"call","call_id":"`)
	outcomeMark  = []byte(`,"event":"outcome","mode":"call","call_id":"`)
	verdictMark  = []byte(`,"verdict":"tool_call",`)
)

// visitCalls visits the decisions and outcomes of calls that are executed here.
func visitCalls(dir string, visit func(decided bool, id string, line []byte)) error {
	names, err := audit.Files(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := visitFile(name, visit); err != nil {
			return err
		}
	}
	return nil
}

func visitFile(name string, visit func(decided bool, id string, line []byte)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 1<<16)
	var long []byte
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if len(long) > 0 {
			line = append(long, line...)
			long = long[:0]
		}
		for _, mark := range [][]byte{decisionMark, outcomeMark} {
			if _, rest, found := bytes.Cut(line, mark); found {
				if id, _, whole := bytes.Cut(rest, []byte{'"'}); whole {
					visit(&mark[0] == &decisionMark[0], string(id), line)
				}
				break
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
