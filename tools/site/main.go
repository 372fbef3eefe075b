// Site renders the Markdown pages of the repository into plain HTML, with a navigation and a search that need no
// server: `make site` writes dist/site.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "the repository's folder")
	out := flag.String("out", "dist/site", "the folder to write; what was there is replaced")
	flag.Parse()
	pages, err := build(*root, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s\n", len(pages), *out)
}
