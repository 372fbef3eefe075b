package lab

import (
	"context"

	"github.com/callgate/callgate/audit"
)

// JudgeRecord gives both judgements on a record, or why one cannot be given.
func (r *Replay) JudgeRecord(ctx context.Context, record *audit.Record) (before, after Judgement, undecided, outside string, err error) {
	was, outside := judged(record)
	if outside != "" {
		return before, after, "", outside, nil
	}
	before, after, undecided, err = r.judge(ctx, record, was)
	return before, after, undecided, "", err
}
