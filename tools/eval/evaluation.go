package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// evaluation is what eval has found.
type evaluation struct {
	results, refused []Result
	omitted          []Omitted
	prose            []Prose
}

func runCases(ctx context.Context, judge *Judge, cases []Case) ([]Result, error) {
	var results []Result
	for i := range cases {
		for _, m := range Models {
			r, err := judge.Run(ctx, &cases[i], m.Name, m.New)
			if err != nil {
				return nil, err
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// corpora has the corpora of a folder judged, where there is one.
func (v *evaluation) corpora(ctx context.Context, judge *Judge, folder string) error {
	if folder == "" {
		return nil
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the corpora: %s is no folder", folder)
	}
	for _, file := range CorpusFiles() {
		all, err := ReadCorpus(folder, file, IsReal(file))
		if errors.Is(err, fs.ErrNotExist) {
			v.omitted = append(v.omitted, Omitted{Name: file, Reason: "the file is not there"})
			continue
		}
		if err != nil {
			return err
		}
		if IsReal(file) {
			p, err := judge.Prose(ctx, file, all)
			if err != nil {
				return err
			}
			v.prose = append(v.prose, p)
		}
		var cases []Case
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
		results, err := runCases(ctx, judge, cases)
		if err != nil {
			return err
		}
		v.refused = append(v.refused, results...)
	}
	return nil
}
