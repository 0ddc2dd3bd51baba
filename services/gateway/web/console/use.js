// SPDX-License-Identifier: Apache-2.0
// Hooks: an answer, a list by pages, a stream, an act.

import { address, get } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./html.js";
import { follow } from "./stream.js";

// GET path?query: {data, problem, waiting, again}. A path that is undefined asks nothing. What an earlier question gets answered is dropped;
// the answer before stays while `again` runs.
export function useAnswer(path, query, { every } = {}) {
  const [round, setRound] = useState(0);
  const [answer, setAnswer] = useState({ waiting: path !== undefined });
  const whole = path && address(path, query);
  useEffect(() => {
    if (!whole) return setAnswer({ waiting: false });
    const leaving = new AbortController();
    setAnswer((before) => ({ ...(before.of === whole && before), of: whole, waiting: true }));
    get(whole, undefined, { signal: leaving.signal }).then(
      (data) => setAnswer({ of: whole, data, waiting: false }),
      (problem) => leaving.signal.aborted || setAnswer((before) => ({ of: whole, data: before.data, problem, waiting: false })));
    return () => leaving.abort();
  }, [whole, round]);
  const again = useCallback(() => setRound((count) => count + 1), []);
  useEffect(() => {
    if (!every || !whole) return;
    const timer = setInterval(() => document.hidden || again(), every);
    return () => clearInterval(timer);
  }, [whole, every]);
  return { ...(answer.of === whole ? answer : { waiting: whole !== undefined }), again }; // never what another address answered
}

// A list: {rows, next, about, problem, waiting, more, again}; `more` asks for the page behind, `about` is what the last page says beside its rows.
export function usePages(path, query, { limit = 100 } = {}) {
  const [list, setList] = useState({ rows: [], waiting: path !== undefined });
  const [round, setRound] = useState(0);
  const asking = useRef();
  const whole = path && address(path, { ...query, limit });
  const page = useCallback((cursor) => {
    asking.current?.abort();
    const leaving = new AbortController();
    asking.current = leaving;
    setList((before) => (cursor ? { ...before, problem: undefined, waiting: true } : { of: whole, rows: before.of === whole ? before.rows : [], waiting: true }));
    get(address(path, { ...query, limit, cursor }), undefined, { signal: leaving.signal }).then(
      ({ data, next, ...about }) => setList((before) => ({ of: whole, rows: cursor ? before.rows.concat(data) : data, next, about, waiting: false })),
      (problem) => leaving.signal.aborted || setList((before) => ({ ...before, problem, waiting: false })));
  }, [whole]);
  useEffect(() => {
    if (!whole) return setList({ rows: [], waiting: false });
    page();
    return () => asking.current?.abort();
  }, [whole, round]);
  const more = useCallback(() => list.next && !list.waiting && page(list.next), [list, page]);
  return { ...list, more, again: useCallback(() => setRound((count) => count + 1), []) };
}

// Of several questions to a list, [{kind, query}], the first that finds a row: {kind, waiting, problem}; kind undefined: none does. A single one is
// not asked.
export function useFirst(path, questions) {
  const whole = questions.length > 1 ? JSON.stringify(questions) : undefined;
  const [found, setFound] = useState({});
  useEffect(() => {
    if (!whole) return undefined;
    const leaving = new AbortController();
    const look = async () => {
      for (const { kind, query } of questions) {
        const { data, next } = await get(path, { ...query, limit: 1 }, { signal: leaving.signal });
        if (data.length > 0 || next) return kind;
      }
      return undefined;
    };
    look().then((kind) => setFound({ of: whole, kind }), (problem) => leaving.signal.aborted || setFound({ of: whole, problem }));
    return () => leaving.abort();
  }, [path, whole]);
  if (!whole) return { kind: questions[0]?.kind };
  return found.of === whole ? found : { waiting: true };
}

// A stream while the component is there: {state, hear}. state: "opening", "open", "lost", or a Problem.
export function useStream(path, query, hear) {
  const [state, setState] = useState("opening");
  const latest = useRef();
  latest.current = hear;
  const whole = path && address(path, query);
  useEffect(() => (whole ? follow(whole, undefined, (event) => latest.current(event), setState) : undefined), [whole]);
  return state;
}

// An act that a person begins: {run, running, problem, done, clear}. It runs once at a time.
export function useAct(act) {
  const [state, setState] = useState({});
  const running = useRef(false);
  const run = async (...values) => {
    if (running.current) return undefined;
    running.current = true;
    setState({ running: true });
    try {
      const done = await act(...values);
      setState({ done: done ?? true });
      return done;
    } catch (problem) {
      setState({ problem });
      return undefined;
    } finally {
      running.current = false;
    }
  };
  return { ...state, run, clear: () => setState({}) };
}
