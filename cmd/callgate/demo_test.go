package main

import (
	"bufio"
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/terminal"
)

// TestDemoHasThreeScreens: between them it waits for a line, and at the end of the input no more.
func TestDemoHasThreeScreens(t *testing.T) {
	loaded, err := configs.Default(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e := env{Stdout: &out, Stderr: &out, Wait: inTests}
	r, err := app.Open(context.Background(), loaded, nil, runtimeOptions(e, warningLog(e)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	steps := demo{Out: &out, Color: terminal.Colorizer(false), Executor: r.Executor, Pause: waitForEnter(e, bufio.NewReader(strings.NewReader("\n")))}
	if err := steps.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	screens := strings.Split(out.String(), "-- Enter: continue --\n")
	if len(screens) != 3 {
		t.Fatalf("%d screens: %s", len(screens), out.String())
	}
	for i, step := range []string{"1. ", "5. ", "9. "} {
		if !strings.HasPrefix(screens[i], step) {
			t.Errorf("the screen %d begins with %.20q", i, screens[i])
		}
	}
}
