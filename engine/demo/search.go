package demo

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	defaultResults = 5
	maxResults     = 50
	maxQueryWords  = 64
	titleWeight    = 3
	snippetBytes   = 200
)

// page is one page of the bundled collection.
type page struct{ host, path, lang, title, body string }

// searchIndex is the collection with its words counted. It is read only.
type searchIndex struct {
	pages             []page
	counts            []map[string]float64 // of each page; a word of the title counts more
	documentFrequency map[string]int       // in how many pages a word is
}

func newSearchIndex(pages []page) *searchIndex {
	l := &searchIndex{pages: pages, documentFrequency: map[string]int{}}
	for _, t := range pages {
		counts := map[string]float64{}
		for _, w := range words(t.body) {
			counts[w]++
		}
		for _, w := range words(t.title) {
			counts[w] += titleWeight
		}
		for w := range counts {
			l.documentFrequency[w]++
		}
		l.counts = append(l.counts, counts)
	}
	return l
}

// words are the runs of letters and digits, in lower case.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// searchResult is one search result.
type searchResult struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet"`
}

// search is the tool web.search: query, and optionally num_results, lang and
// site. Pages with none of the words are no results; the order is by the
// rarity and number of the words that a page has.
func (l *searchIndex) search(_ context.Context, _ tool.Call, given arguments) (any, *refusal.Error) {
	query, refused := given.text("query")
	if refused != nil {
		return nil, refused
	}
	count, refused := given.integer("num_results", defaultResults)
	if refused != nil {
		return nil, refused
	}
	lang, refused := given.text("lang")
	if refused != nil {
		return nil, refused
	}
	site, refused := given.text("site")
	if refused != nil {
		return nil, refused
	}

	var sought []string
	for _, w := range words(query) {
		if len(sought) < maxQueryWords && !slices.Contains(sought, w) {
			sought = append(sought, w)
		}
	}
	type hit struct {
		text  int
		score float64
	}
	var hits []hit
	for i, t := range l.pages {
		if lang != "" && t.lang != lang || site != "" && !strings.EqualFold(t.host, site) {
			continue
		}
		score := 0.0
		for _, w := range sought {
			if n := l.counts[i][w]; n > 0 {
				score += (1 + math.Log(n)) * math.Log(1+float64(len(l.pages))/float64(l.documentFrequency[w]))
			}
		}
		if score > 0 {
			hits = append(hits, hit{i, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	hits = hits[:min(len(hits), max(count, 0), maxResults)]

	results := make([]searchResult, 0, len(hits))
	for _, h := range hits {
		t := l.pages[h.text]
		results = append(results, searchResult{t.title, "https://" + t.host + t.path, snippet(t.body, sought)})
	}
	return struct {
		Results []searchResult `json:"results"`
	}{results}, nil
}

// snippet is the part of a text around the first sought word, cut at words.
func snippet(body string, sought []string) string {
	if len(body) <= snippetBytes {
		return body
	}
	first := 0
	offset := 0
	for field := range strings.FieldsSeq(body) {
		at := offset + strings.Index(body[offset:], field)
		offset = at + len(field)
		if slices.ContainsFunc(words(field), func(w string) bool { return slices.Contains(sought, w) }) {
			first = at
			break
		}
	}
	from := min(max(0, first-snippetBytes/3), len(body)-snippetBytes)
	to := from + snippetBytes
	for !utf8.RuneStart(body[from]) {
		from++
	}
	for to < len(body) && !utf8.RuneStart(body[to]) {
		to--
	}
	cut := body[from:to]
	if from > 0 {
		cut = "… " + cut[strings.IndexByte(cut, ' ')+1:]
	}
	if to < len(body) {
		cut = cut[:max(strings.LastIndexByte(cut, ' '), 0)] + " …"
	}
	return cut
}
