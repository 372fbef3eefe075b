package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed page.html site.css search.js
var assets embed.FS

// index is the page whose paragraphs are the navigation.
const index = "docs/README.md"

// forge is where folders of the repository are shown, which the site does not have.
const forge = "https://github.com/callgate/callgate/tree/main/"

// A page is one Markdown file: its path in the repository, its title, and what is rendered of it.
type page struct {
	file, title string
	source      []byte
	tree        ast.Node
	anchors     map[string]bool
}

// A section is what the search finds: a heading and the words below it.
type section struct {
	URL     string `json:"u"`
	Page    string `json:"p"`
	Heading string `json:"h"`
	Words   string `json:"w"`
	Begins  string `json:"b"`
}

// A group is a part of the navigation.
type group struct {
	Title string
	Links []link
}

type link struct{ Title, URL string }

// address is the path of a page's HTML.
func address(file string) string {
	dir, name := path.Split(file)
	if name == "README.md" {
		return dir + "index.html"
	}
	return strings.TrimSuffix(file, ".md") + ".html"
}

// from is the relative URL of a file for a page of the site.
func from(page, target string) string {
	rel, err := filepath.Rel(filepath.FromSlash(path.Dir(page)), filepath.FromSlash(target))
	if err != nil {
		panic(err) // both are relative
	}
	return filepath.ToSlash(rel)
}

// anchors gives headings the ids that a forge gives them.
type anchors struct{ seen map[string]bool }

func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(string(value)))
	unique := id
	for n := 1; a.seen[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", id, n)
	}
	a.seen[unique] = true
	return []byte(unique)
}

func (a *anchors) Put(value []byte) { a.seen[string(value)] = true }

// build renders every page below root into out, with all that they link to.
func build(root, out string) (map[string]*page, error) {
	md := goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	pages, err := read(root, md)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(out); err != nil {
		return nil, err
	}
	frame, err := template.ParseFS(assets, "page.html")
	if err != nil {
		return nil, err
	}
	var faults []error
	var sections []section
	groups := navigation(pages)
	for _, file := range sorted(pages) {
		p := pages[file]
		sections = append(sections, p.sections()...) // before its links lead to HTML
		faults = append(faults, p.relink(root, out, pages))
		var body, html bytes.Buffer
		if err := md.Renderer().Render(&body, p.source, p.tree); err != nil {
			return nil, err
		}
		top := strings.Repeat("../", strings.Count(file, "/"))
		if err := frame.Execute(&html, map[string]any{"Title": p.title, "Top": top, "Groups": groups, "Here": address(file), "Body": template.HTML(body.String())}); err != nil { //nolint:gosec // our own pages
			return nil, err
		}
		faults = append(faults, write(filepath.Join(out, address(file)), html.Bytes()))
	}
	list, err := json.Marshal(sections)
	if err != nil {
		return nil, err
	}
	// A script and not JSON, since pages of file: may not fetch.
	faults = append(faults, write(filepath.Join(out, "index.js"), append(append([]byte("var sections = "), list...), ";\n"...)))
	for _, name := range []string{"site.css", "search.js"} {
		data, err := assets.ReadFile(name)
		faults = append(faults, err, write(filepath.Join(out, name), data))
	}
	return pages, errors.Join(faults...)
}

// read parses the pages: those of docs, and those beside it that a reader of docs comes to.
func read(root string, md goldmark.Markdown) (map[string]*page, error) {
	pages := map[string]*page{}
	add := func(file string) error {
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		p := &page{file: filepath.ToSlash(file), source: source, anchors: map[string]bool{}}
		p.tree = md.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(&anchors{p.anchors}))))
		if h, ok := p.tree.FirstChild().(*ast.Heading); ok {
			p.title = words(h, source)
		} else {
			return fmt.Errorf("%s begins with no heading", file)
		}
		pages[p.file] = p
		return nil
	}
	for _, file := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md"} {
		if err := add(file); err != nil {
			return nil, err
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".md" {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return add(rel)
	})
	return pages, err
}

func sorted(pages map[string]*page) []string {
	var files []string
	for file := range pages {
		files = append(files, file)
	}
	slices.Sort(files)
	return files
}

// words is the text of a node, without its markup.
func words(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		}
		if !entering && n.Type() == ast.TypeBlock {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// relink makes links lead to HTML, copies other files that are linked to, and reports links that lead nowhere.
func (p *page) relink(root, out string, pages map[string]*page) error {
	var faults []error
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		var destination *[]byte
		switch n := n.(type) {
		case *ast.Link:
			destination = &n.Destination
		case *ast.Image:
			destination = &n.Destination
		}
		if destination == nil || !entering || bytes.Contains(*destination, []byte("://")) ||
			bytes.HasPrefix(*destination, []byte("mailto:")) {
			return ast.WalkContinue, nil
		}
		file, anchor, _ := strings.Cut(string(*destination), "#")
		target := p.file
		if file != "" {
			target = path.Join(path.Dir(p.file), file)
		}
		to, isPage := pages[target]
		stat, err := os.Stat(filepath.Join(root, target))
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("%s links to %s, which is not there", p.file, target))
		case isPage && anchor != "" && !to.anchors[anchor]:
			faults = append(faults, fmt.Errorf("%s links to %s#%s; that page has no such heading", p.file, target, anchor))
		case isPage && file == "": // within the page
		case isPage:
			*destination = []byte(from(p.file, address(target)))
			if anchor != "" {
				*destination = append(*destination, "#"+anchor...)
			}
		case stat.IsDir():
			*destination = []byte(forge + target)
		default:
			data, err := os.ReadFile(filepath.Join(root, target))
			faults = append(faults, err, write(filepath.Join(out, target), data))
		}
		return ast.WalkContinue, nil
	})
	return errors.Join(faults...)
}

// sections are the parts of a page by its headings, for the search.
func (p *page) sections() []section {
	var all []section
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			id, _ := h.AttributeString("id")
			all = append(all, section{URL: fmt.Sprintf("%s#%s", address(p.file), id), Page: p.title, Heading: words(h, p.source)})
			continue
		}
		s, said := &all[len(all)-1], words(n, p.source)
		if s.Begins == "" && n.Kind() != ast.KindFencedCodeBlock && n.Kind() != ast.KindCodeBlock {
			s.Begins = said
			if len(said) > 160 {
				s.Begins = said[:max(0, strings.LastIndexByte(said[:160], ' '))] + " …"
			}
		}
		s.Words += said + " "
	}
	for i := range all {
		fields := strings.FieldsFunc(strings.ToLower(all[i].Words),
			func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		slices.Sort(fields)
		all[i].Words = strings.Join(slices.Compact(fields), " ")
	}
	return all
}

// navigation has a group for each paragraph of the index that begins with bold words, and one for other pages.
func navigation(pages map[string]*page) []group {
	var groups []group
	listed := map[string]bool{"README.md": true, index: true}
	for n := pages[index].tree.FirstChild(); n != nil; n = n.NextSibling() {
		title, ok := n.FirstChild().(*ast.Emphasis)
		if !ok || n.Kind() != ast.KindParagraph {
			continue
		}
		g := group{Title: strings.TrimRight(words(title, pages[index].source), ".")}
		for l := n.FirstChild(); l != nil; l = l.NextSibling() {
			to, ok := l.(*ast.Link)
			if !ok {
				continue
			}
			file, _, _ := strings.Cut(path.Join(path.Dir(index), string(to.Destination)), "#")
			if pages[file] != nil && !listed[file] {
				listed[file] = true
				g.Links = append(g.Links, link{pages[file].title, address(file)})
			}
		}
		groups = append(groups, g)
	}
	var rest group
	for _, file := range sorted(pages) {
		if !listed[file] {
			rest.Links = append(rest.Links, link{pages[file].title, address(file)})
		}
	}
	if len(rest.Links) > 0 {
		rest.Title = "More"
		groups = append(groups, rest)
	}
	return groups
}

func write(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a server reads it as another user
		return err
	}
	return os.WriteFile(file, data, 0o644) //nolint:gosec // a server reads it as another user
}
