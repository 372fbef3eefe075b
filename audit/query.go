package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// OpenCalls returns the decisions of executed calls (Mode Call, Verdict ToolCall)
// that have no outcome in the log in dir, in the order of the log: the calls that
// its processes were executing when they ended. The log is read as it is; whether
// it was changed is for Verifier to tell.
func OpenCalls(dir string) ([]Record, error) {
	open := map[string][]byte{} // lines, by call id
	var order []string
	err := visitCalls(dir, func(event Event, id string, line []byte) {
		switch {
		case event == Ending:
			delete(open, id)
		case hasVerdict(line, ToolCall):
			open[id] = bytes.Clone(line)
			order = append(order, id)
		}
		if len(order) > 2*len(open)+4096 { // most of them have ended
			order = stillOpen(order, open)
		}
	})
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, id := range stillOpen(order, open) {
		var r Record
		if err := json.Unmarshal(open[id], &r); err != nil {
			return nil, fmt.Errorf("the decision of a call cannot be read: %w", err)
		}
		records = append(records, r)
	}
	return records, nil
}

// hasVerdict reports whether a decision has a verdict. A line that cannot be read
// may have any: if its call has no outcome, OpenCalls refuses the log.
func hasVerdict(line []byte, want Verdict) bool {
	var r struct {
		Verdict Verdict `json:"verdict"`
	}
	return json.Unmarshal(line, &r) != nil || r.Verdict == want
}

// stillOpen are the ids that are still open, each once.
func stillOpen(order []string, open map[string][]byte) []string {
	kept := make([]string, 0, len(open))
	seen := make(map[string]bool, len(open))
	for _, id := range order {
		if _, isOpen := open[id]; isOpen && !seen[id] {
			kept, seen[id] = append(kept, id), true
		}
	}
	return kept
}

// maxQueries is how often the files are read which a rotation may move meanwhile.
const maxQueries = 3

// EndedCalls reports which of some executed calls have an outcome in the log in dir.
func EndedCalls(dir string, ids []string) (map[string]bool, error) {
	wanted, ended := make(map[string]bool, len(ids)), map[string]bool{}
	for _, id := range ids {
		wanted[id] = true
	}
	// A rotation gives a file another name. One that took place meanwhile may have
	// kept a file from being read, or had it read twice, which does no harm.
	for range maxQueries {
		before, err := Files(dir)
		if err != nil {
			return nil, err
		}
		err = visitCalls(dir, func(event Event, id string, _ []byte) {
			if event == Ending && wanted[id] {
				ended[id] = true
			}
		})
		if after, failed := Files(dir); failed == nil && slices.Equal(before, after) {
			return ended, err
		}
	}
	return nil, errors.New("the files of the audit log change faster than they can be read")
}

// visitCalls visits the decisions and outcomes of executed calls, oldest first.
func visitCalls(dir string, visit func(event Event, id string, line []byte)) error {
	names, err := Files(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := logfile.OpenRead(name)
		if err != nil {
			return err
		}
		_, _, err = logfile.EachLine(f, func(line []byte, _ int64) error {
			if event, id, ok := executedCall(line); ok {
				visit(event, id, line)
			}
			return nil
		})
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// executedCall reads what a record says at its beginning of an executed call. The
// members before call_id are the log's own and stand in one order, so the first
// event of a line is the record's; what looks like one further on, in arguments or
// in a completion, is content.
func executedCall(line []byte) (event Event, id string, ok bool) {
	_, rest, found := bytes.Cut(line, []byte(`,"event":"`))
	if !found {
		return "", "", false
	}
	for _, event := range []Event{Decision, Ending} {
		if after, ok := bytes.CutPrefix(rest, []byte(string(event)+`","mode":"`+string(Call)+`","call_id":"`)); ok {
			raw, _, whole := bytes.Cut(after, []byte{'"'})
			return event, string(raw), whole
		}
	}
	return "", "", false
}
