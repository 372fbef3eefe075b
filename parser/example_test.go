package parser_test

import (
	"fmt"

	"github.com/callgate/callgate/parser"
)

// Every completion has exactly one verdict.
func ExampleParse() {
	for _, completion := range []string{
		`{"tool":{"name":"web.search","arguments":{"query":"weather"}}}`,
		`It will rain.`,
		`Sure! {"tool":{"name":"web.search","arguments":{}}}`,
	} {
		switch r := parser.Parse([]byte(completion), false, parser.Options{}); r.Kind {
		case parser.Call:
			fmt.Printf("call of %s with %s\n", r.Name, r.Arguments)
		case parser.Text:
			fmt.Printf("text: %s\n", r.Text)
		case parser.Refused:
			fmt.Printf("refused: %s\n", r.Refusal.Code)
		}
	}
	// Output:
	// call of web.search with {"query":"weather"}
	// text: It will rain.
	// refused: mixed_output
}

// Text is released as it arrives. A brace is held until it is known to open no object.
func ExampleStream() {
	s := parser.NewStream(parser.Options{})
	for _, piece := range []string{"The set {", "1, 2} ", "is finite."} {
		fmt.Printf("%q\n", s.Write([]byte(piece)))
	}
	r := s.Close(false)
	fmt.Println(r.Kind == parser.Text)
	// Output:
	// "The set "
	// "{1, 2} "
	// "is finite."
	// true
}

// A place in the arguments is a byte offset in the completion.
func ExampleOffsets() {
	completion := `{"tool":{"name":"a.b","arguments":{"n":"seven"}}}`
	r := parser.Parse([]byte(completion), false, parser.Options{})
	for _, at := range parser.Offsets(r.Arguments, r.ArgumentsOffset, []parser.Position{
		{Path: []string{"n"}, Part: parser.Name},
		{Path: []string{"n"}, Part: parser.Value},
	}) {
		fmt.Println(at, completion[at:at+3])
	}
	// Output:
	// 35 "n"
	// 39 "se
}
