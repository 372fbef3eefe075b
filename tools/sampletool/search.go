package main

import (
	"cmp"
	"context"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxFiles       = 1000 // that one search reads
	maxQuery       = 400  // code points
	maxWords       = 16
	defaultResults = 5
	maxResults     = 50
	snippetBytes   = 200
)

// The score of a line: for each word of the query that it has as a word, or
// only within one, and for the whole query as it was written.
const (
	wordScore   = 3
	withinScore = 1
	phraseScore = 4
)

// result is one line that was found, counted from 1.
type result struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Snippet string `json:"snippet"`
	score   int
}

// found is what /search answers. Incomplete says that the folder has more files
// than were read.
type found struct {
	Results    []result `json:"results"`
	Incomplete bool     `json:"incomplete,omitempty"`
}

// search is the tool /search.
func (l library) search(ctx context.Context, body []byte) (any, error) {
	var query string
	limit := whole(defaultResults)
	err := decode(body,
		argument{name: "query", into: &query, expected: "a text of 1 to 400 characters", required: true},
		argument{name: "limit", into: &limit, expected: "an integer from 1 to 50"},
	)
	if err != nil {
		return nil, err
	}
	if n := utf8.RuneCountInString(query); n < 1 || n > maxQuery {
		return nil, failed(http.StatusBadRequest, "found a query of %d characters; expected 1 to %d", n, maxQuery)
	}
	if limit < 1 || limit > maxResults {
		return nil, failed(http.StatusBadRequest, "found another limit; expected 1 to %d", maxResults)
	}
	return l.find(ctx, newTerms(query), int(limit))
}

// find returns the best lines of all files. A file that cannot be read, or is
// not text, has none.
func (l library) find(ctx context.Context, wanted terms, limit int) (found, error) {
	answer := found{Results: []result{}}
	files := 0
	err := fs.WalkDir(l.files, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && path == ".":
			return err
		case err != nil:
			return fs.SkipDir // a folder further down: the others are still searched
		case !d.Type().IsRegular():
			return nil
		case files == maxFiles:
			answer.Incomplete = true
			return fs.SkipAll
		}
		files++
		// A file that cannot be read is empty here: the others are still searched.
		text, _ := l.open(path)
		for i, line := range linesOf(text) {
			if score := wanted.score(line); score > 0 {
				answer.Results = insert(answer.Results, limit, result{path, i + 1, snippet(line), score})
			}
		}
		return nil
	})
	return answer, err
}

// insert keeps the best results, the best first.
func insert(best []result, limit int, r result) []result {
	at, _ := slices.BinarySearchFunc(best, r, func(a, b result) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	if at == limit {
		return best
	}
	best = slices.Insert(best, at, r)
	return best[:min(len(best), limit)]
}

// terms are a query in lower case, taken apart. One of nothing but space finds
// nothing.
type terms struct {
	phrase string
	words  []string
}

func newTerms(query string) terms {
	s := terms{phrase: strings.ToLower(strings.TrimSpace(query))}
	for _, w := range words(s.phrase) {
		if len(s.words) < maxWords && !slices.Contains(s.words, w) {
			s.words = append(s.words, w)
		}
	}
	return s
}

// score is 0 for a line that has nothing of the query.
func (s terms) score(line string) int {
	if s.phrase == "" {
		return 0
	}
	line = strings.ToLower(line)
	total := 0
	if strings.Contains(line, s.phrase) {
		total += phraseScore
	}
	var has []string
	for _, w := range s.words {
		if !strings.Contains(line, w) {
			continue
		}
		if has == nil {
			has = words(line)
		}
		if slices.Contains(has, w) {
			total += wordScore
		} else {
			total += withinScore
		}
	}
	return total
}

// words are the runs of letters and digits.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// snippet is a line without outer space, cut between two code points.
func snippet(line string) string {
	line = strings.TrimSpace(line)
	if len(line) <= snippetBytes {
		return line
	}
	end := snippetBytes
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "…"
}
