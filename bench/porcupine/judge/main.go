// Command judge checks histories with Porcupine.
//
//	judge --timeout 20s manifest.json
//
// The manifest is a list of {name, file, model, initial}. A file has one event per line, as JSON with
// Jepsen's fields: process, type (invoke, ok, fail, info), f, value. The output has one line for each
// history: its verdict, and the seconds of reading and of checking.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"
)

type entry struct {
	Name    string          `json:"name"`
	File    string          `json:"file"`
	Model   string          `json:"model"`
	Initial json.RawMessage `json:"initial"`
}

type judged struct {
	Name    string  `json:"name"`
	Verdict string  `json:"verdict"`
	ReadS   float64 `json:"read_s"`
	CheckS  float64 `json:"check_s"`
}

var verdicts = map[porcupine.CheckResult]string{
	porcupine.Ok: "valid", porcupine.Illegal: "invalid", porcupine.Unknown: "unknown",
}

func judge(folder string, each entry, timeout time.Duration) (judged, error) {
	begin := time.Now()
	values := newValues(each.Initial)
	operations, err := read(filepath.Join(folder, each.File), each.Model, values)
	if err != nil {
		return judged{}, err
	}
	model, err := modelOf(each.Model, values)
	if err != nil {
		return judged{}, err
	}
	ready := time.Now()
	result := porcupine.CheckOperationsTimeout(model, operations, timeout)
	end := time.Now()
	return judged{
		each.Name, verdicts[result], ready.Sub(begin).Seconds(), end.Sub(ready).Seconds(),
	}, nil
}

func main() {
	timeout := flag.Duration("timeout", 20*time.Second, "limit of the check of one history")
	flag.Parse()
	path := flag.Arg(0)
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	var entries []entry
	if err := json.Unmarshal(text, &entries); err != nil {
		log.Fatalf("%s: %v", path, err)
	}
	for _, each := range entries {
		found, err := judge(filepath.Dir(path), each, *timeout)
		if err != nil {
			log.Fatalf("%s: %v", each.Name, err)
		}
		line, err := json.Marshal(found)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(line))
	}
}
