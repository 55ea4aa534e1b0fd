package manifest_test

import (
	"strings"
	"testing"

	"clifftop/experiments/launch/manifest"
	"clifftop/experiments/scenario/yamldoc"
)

// deployment is a Deployment whose container has these lines, with the indentation that they need.
func deployment(container string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: chat}\nspec:\n  template:\n    spec:\n" +
		"      containers:\n      - name: server\n" + container
}

// What users get wrong: each is one line with the place, what was found and what to write.
func TestFaultsSayWhereAndWhatToWrite(t *testing.T) {
	for _, c := range []struct{ name, text, want, hint string }{
		{"a.yaml", "image: {{ .Values.image }}\nkind: Deployment\napiVersion: v1\n",
			"a.yaml:1:8: this is a template that was not rendered", "helm template"},
		{"values.yaml", "{{- define \"x\" }}\na: 1\n", "values.yaml:1:1: this is a template", "helm template"},
		{"a.yaml", deployment("        image: \"{{ .Values.image }}\"\n        args: [--model, \"{{ .Values.model }}\"]\n"),
			"a.yaml:10:1: this is a template that was not rendered", "helm template"},
		{"a.yaml", "a: 1\n<<<<<<< HEAD\nb: 1\n=======\n", "a.yaml:2:1: the file has the marks of a merge conflict", ""},
		{"serve.sh", "<<<<<<< HEAD\nvllm serve m\n", "serve.sh:1:1: the file has the marks of a merge conflict", ""},
		{"a.yaml", "kind: Pod\napiVersion: v1\nspec: {containers: [\n", "a.yaml:", ""},
		{"a.yaml", "kind: Pod\napiVersion: v1\nspec:\n\tcontainers: []\n", "a.yaml:4:", ""},
		{"a.yaml", deployment("        image: ghcr.io/huggingface/text-generation-inference:3\n"),
			"a.yaml: no engine is launched here", "text-generation-inference:3"},
		{"a.yaml", deployment("        image: vllm/vllm-openai\n        command: vllm serve m\n"),
			`a.yaml:10:18: command: "vllm serve m" is a text (want a list of texts)`, "[sh, -c,"},
		{"a.yaml", deployment("        image: vllm/vllm-openai\n        args: [--model, m]\n        resources: {limits: " +
			"{nvidia.com/gpu: two}}\n"), `a.yaml:11:46: nvidia.com/gpu: "two" is a text (want a whole number)`, ""},
		{"a.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: chat}\n", "a.yaml: no engine is launched here",
			"the objects here are Service"},
		{"a.yaml", "apiVersion: apps/v1\nkind: Deploymnt\nmetadata: {name: chat}\n", "a.yaml: no engine is launched here",
			"the objects here are Deploymnt; did you mean Deployment?"},
		{"kustomization.yaml", "resources: [deploy.yaml]\n", "kustomization.yaml: this is no manifest that is known",
			"kubectl kustomize"},
		{"k.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", "k.yaml: no engine is launched here",
			"kubectl kustomize"},
		{"page.md", "# Serve\n```bash\nvllm serve (\n```\n", "page.md:3:", ""},
		{"a.yaml", "tensor-parallel-size: 4\nmodel: m\n", "a.yaml: this is no manifest that is known",
			"'vllm serve --config a.yaml'"},
		{"a.yaml", "- 1\n- 2\n", "a.yaml: this is no manifest that is known", ""},
		{"a.yml", "services:\n  web:\n    image: nginx\n    command: nginx -g x\n", "a.yml: no engine is launched here",
			"nginx"},
		{"a.yml", "services:\n  a:\n    image: vllm/vllm-openai\n    command: --model m\n    deploy: {replicas: \"${N}\"}\n",
			`a.yml:5:24: replicas: "${N}" is a text (want a whole number)`, "--env N=VALUE sets it"},
		{"a.yml", "services:\n  a: {image: vllm/vllm-openai, command: --model m}\n" +
			"  b: {image: vllm/vllm-openai, command: --model n}\n", "a.yml: 2 models are served here (want one; --line N",
			"1 is a in line 2, 2 is b in line 3"},
		{"Dockerfile", "RUN x\n", "Dockerfile:1:1: this Dockerfile has no FROM", ""},
		{"Dockerfile", "FROM python:3\nCMD [\"python\", \"app.py\"]\n", "Dockerfile: no engine is launched here", "python:3"},
		{"values.yaml", "servingEngineSpec:\n  modelSpec:\n  - name: a\n    requestGPU: 1\n",
			"values.yaml:3:5: servingEngineSpec.modelSpec: the model has no modelURL", ""},
		{"run.sh", "trtllm-serve disaggregated -c pools.yaml\n", "run.sh:1:1: pools.yaml cannot be read", ""},
		{"empty.yaml", "# nothing\n", "empty.yaml: the file is empty", ""},
		{"a.bin", "a\x00b", "a.bin: this is not text", ""},
	} {
		o := manifest.Options{}
		o.Read = func(string) ([]byte, error) { return nil, yamldoc.Faults{} }
		_, err := manifest.Read(c.name, []byte(c.text), o)
		faults, ok := err.(yamldoc.Faults)
		if !ok || len(faults) != 1 {
			t.Errorf("%s: %v, want one fault with %s", c.text, err, c.want)
			continue
		}
		if got := faults[0].Error(); !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
		if !strings.Contains(faults[0].Hint, c.hint) {
			t.Errorf("%s\nhint %q, want %q", c.text, faults[0].Hint, c.hint)
		}
	}
}

func TestLineChoosesOneOfSeveralEngines(t *testing.T) {
	text := "services:\n  a: {image: vllm/vllm-openai, command: --model m}\n" +
		"  b: {image: vllm/vllm-openai, command: --model n}\n"
	o := manifest.Options{Line: 2}
	s, err := manifest.Read("a.yml", []byte(text), o)
	if err != nil || len(s.Groups) != 1 || s.Groups[0].Name != "b" {
		t.Fatal(s, err)
	}
	o.Line = 3
	_, err = manifest.Read("a.yml", []byte(text), o)
	if err == nil || err.Error() != "--line: 3 is not allowed (want 1 to 2)" {
		t.Error(err)
	}
}

// Variables of the options stand in the place of those of the file.
func TestVariablesOfTheOptionsWin(t *testing.T) {
	o := manifest.Options{}
	o.Env = map[string]string{"TP": "4", "TAG": "v0.14.0", "N": "3"}
	for name, text := range map[string]string{
		"a.yml": "services:\n  a:\n    image: vllm/vllm-openai:${TAG:-latest}\n    command: --model m -tp ${TP:-2}\n" +
			"    deploy: {replicas: \"${N}\"}\n",
		"Dockerfile": "ARG TAG=latest\nFROM vllm/vllm-openai:${TAG}\nARG TP=2\nENTRYPOINT vllm serve m -tp $TP\n",
		"a.yaml": deployment("        image: vllm/vllm-openai:${TAG}\n        args: [--model, m, -tp, $(TP)]\n" +
			"        env: [{name: TP, value: \"2\"}]\n"),
	} {
		s, err := manifest.Read(name, []byte(text), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l := s.Groups[0].Line
		tp := l.Flags[len(l.Flags)-1].Value
		if l.Release != "0.14.0" || tp != "4" || name == "a.yml" && s.Groups[0].Replicas != 3 {
			t.Errorf("%s: release %s, tp %s, %d replicas", name, l.Release, tp, s.Groups[0].Replicas)
		}
	}
}

// Launch lines of a page: blocks with placeholders and other languages are left out, and places are those of the page.
func TestPagesOfMarkdownAreRead(t *testing.T) {
	page := "# Serve\n\n```python\nllm = LLM(model)\n```\n\n```bash\nexport HF_TOKEN=<your token (see below)>\n```\n\n" +
		"```console\n$ pip install vllm\n$ vllm serve Qwen/Qwen3-32B \\\n    --max-num-seqs 8\n```\n"
	s, err := manifest.Read("page.md", []byte(page), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if g := s.Groups[0]; g.Line.Model != "Qwen/Qwen3-32B" || g.At.Line != 13 || g.Line.Flags[0].At.Line != 14 {
		t.Errorf("%q at %v, flag at %v", g.Line.Model, g.At, g.Line.Flags[0].At)
	}
}

// Compose reads variables from .env and env_file beside it.
func TestComposeReadsFilesOfVariables(t *testing.T) {
	text := "services:\n  a:\n    image: vllm/vllm-openai:${TAG}\n    env_file: [gpu.env]\n" +
		"    entrypoint: [sh, -c]\n    command: [\"vllm serve m --max-num-seqs $$SEQS -tp ${TP}\"]\n"
	o := manifest.Options{}
	o.Env = map[string]string{"TP": "4"}
	o.Read = func(name string) ([]byte, error) {
		return []byte(map[string]string{".env": "# tags\nTAG='v0.14.0'\nTP=2\n",
			"gpu.env": "export SEQS=8\nNVIDIA_VISIBLE_DEVICES=0,1,2,3\n"}[name]), nil
	}
	s, err := manifest.Read("a.yml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	g := s.Groups[0]
	if f := g.Line.Flags; g.Line.Release != "0.14.0" || f[0].Value != "8" || f[1].Value != "4" || g.GPUsPerNode != 4 {
		t.Errorf("%s %v, %d GPUs", g.Line.Release, f, g.GPUsPerNode)
	}
}

// Lines that end with a carriage return, and a byte order mark, as editors on Windows write them.
func TestFilesOfWindowsAreRead(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(deployment("        image: vllm/vllm-openai\n        command: [sh, -c]\n"+
		"        args:\n        - |\n          vllm serve m \\\n            --max-num-seqs 8\n"), "\n", "\r\n")
	s, err := manifest.Read("a.yaml", []byte(text), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f := s.Groups[0].Line.Flags[0]; f.Value != "8" || f.At.Line != 14 || f.At.Column != 13 {
		t.Errorf("%q at %v, want 8 at line 14", f.Value, f.At)
	}
}
