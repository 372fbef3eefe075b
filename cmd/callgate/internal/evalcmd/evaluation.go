package evalcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/callgate/callgate/eval"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/terminal"
)

// evaluation is what eval has found.
type evaluation struct {
	results, refused []eval.Result
	omitted          []eval.Omitted
	prose            []eval.Prose
}

func runCases(ctx context.Context, judge *eval.Judge, cases []eval.Case, progress *terminal.Progress) ([]eval.Result, error) {
	var results []eval.Result
	for i := range cases {
		for _, m := range eval.Models {
			r, err := judge.Run(ctx, &cases[i], m.Name, m.New)
			if err != nil {
				return nil, err
			}
			results = append(results, r)
			progress.Add(1)
		}
	}
	return results, nil
}

// corpora has our own plain answers judged, and the corpora of a folder where there is one.
func (v *evaluation) corpora(ctx context.Context, judge *eval.Judge, folder string, progress *terminal.Progress) error {
	own, err := eval.BuiltInProse()
	if err != nil {
		return cli.InternalError{Err: err}
	}
	p, err := judge.Prose(ctx, "our own", own)
	if err != nil {
		return err
	}
	v.prose = append(v.prose, p)
	if folder == "" {
		return nil
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the corpora: %s is no folder", folder)
	}
	for _, file := range eval.CorpusFiles() {
		all, err := eval.ReadCorpus(folder, file, eval.IsReal(file))
		if errors.Is(err, fs.ErrNotExist) {
			v.omitted = append(v.omitted, eval.Omitted{Name: file, Reason: "the file is not there"})
			continue
		}
		if err != nil {
			return err
		}
		if eval.IsReal(file) {
			if p, err = judge.Prose(ctx, file, all); err != nil {
				return err
			}
			v.prose = append(v.prose, p)
		}
		var cases []eval.Case
		for _, c := range all {
			refused, omitted, err := judge.RefusedCase(ctx, c)
			if err != nil {
				return err
			}
			if omitted != nil {
				v.omitted = append(v.omitted, *omitted)
				continue
			}
			cases = append(cases, *refused)
		}
		results, err := runCases(ctx, judge, cases, progress)
		if err != nil {
			return err
		}
		v.refused = append(v.refused, results...)
	}
	return nil
}
