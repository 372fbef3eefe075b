package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// A release sets these with the linker's -X; nothing else writes to them.
var linkedVersion, linkedCommit, linkedDate string

// build is what a program was built from: the version without a leading v, the commit, and the
// commit's time as RFC 3339 writes it. Commit and date may be empty.
type build struct{ version, commit, date string }

func newVersion(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version, the commit and its time, if the build knows them (not after go install),
the version of Go, and the platform.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return printVersion(e) },
	}
}

func printVersion(e env) error {
	b := built()
	words := []string{"callgate", b.version, b.commit, b.date, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	_, err := fmt.Fprintln(e.Stdout, strings.Join(nonEmpty(words), " "))
	return err
}

// nonEmpty are the words that say something.
func nonEmpty(words []string) []string {
	var kept []string
	for _, w := range words {
		if w != "" {
			kept = append(kept, w)
		}
	}
	return kept
}

func built() build {
	info, _ := debug.ReadBuildInfo()
	return build{linkedVersion, linkedCommit, linkedDate}.completed(info)
}

// completed takes from the go command's own notes what the linker was not told. Without either the
// version is devel. The notes may be nil.
func (b build) completed(info *debug.BuildInfo) build {
	if info != nil {
		if v := info.Main.Version; b.version == "" && v != "(devel)" {
			b.version = strings.TrimPrefix(v, "v")
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && b.commit == "":
				b.commit = s.Value
			case s.Key == "vcs.time" && b.date == "":
				b.date = s.Value
			}
		}
	}
	if b.version == "" {
		b.version = "devel"
	}
	return b
}
