// What the explorer shows can be chosen here.
import type { Page } from "../document";
import { change, isOn } from "../state";
import { ALL, type Shown } from "./select";

export function Controls({ page, shown }: { page: Page; shown: Shown }) {
  const axes = page.factors.filter((factor) => factor.levels.length > 1);
  const limited = shown.lines.some((line) => line.points.some((point) => point.limit !== undefined));
  return (
    <form class="controls" onSubmit={(event) => event.preventDefault()}>
      <Choice
        name="metric"
        value={shown.metric.name}
        choices={page.metrics.map((metric) => [metric.name, metric.label])}
        onChoice={(metric) => change({ metric })}
      />
      {shown.choices.map(({ factor, chosen }) => (
        <Choice
          key={factor.name}
          name={factor.name}
          label={factor.label}
          value={chosen === undefined ? ALL : factor.levels[chosen]!}
          choices={[[ALL, "all"], ...factor.levels.map((level, place): [string, string] => [level, factor.labels[place]!])]}
          onChoice={(level) => change({ ["f." + factor.name]: level })}
        />
      ))}
      {axes.length > 1 && (
        <Choice
          name="across"
          value={shown.axis.name}
          choices={axes.map((factor) => [factor.name, factor.label])}
          onChoice={(x) => change({ x })}
        />
      )}
      <fieldset>
        <legend>show</legend>
        <Switch name="intervals" label="95 % intervals" initially={true} />
        <Switch name="runs" label="single runs" initially={false} />
        {limited && <Switch name="limits" label={`limit by ${page.limited_by}`} initially={true} />}
        {shown.overlays.length > 0 && <Switch name="published" label="published figures" initially={true} />}
        {shown.numeric && <Switch name="logx" label={`log ${shown.axis.label}`} initially={true} />}
        <Switch name="logy" label="log figure" initially={false} />
        <Switch name="zero" label="from zero" initially={false} />
      </fieldset>
    </form>
  );
}

interface ChoiceProps {
  name: string;
  /** What people read, where that is not the name. */
  label?: string;
  value: string;
  choices: readonly (readonly [string, string])[];
  onChoice: (value: string) => void;
}

export function Choice({ name, label = name, value, choices, onChoice }: ChoiceProps) {
  return (
    <label>
      <span>{label}</span>
      <select name={name} value={value} onChange={(event) => onChoice(event.currentTarget.value)}>
        {choices.map(([level, words]) => (
          <option key={level} value={level} selected={level === value}>{words}</option>
        ))}
      </select>
    </label>
  );
}

function Switch({ name, label, initially }: { name: string; label: string; initially: boolean }) {
  return (
    <label class="switch">
      <input type="checkbox" name={name} checked={isOn(name, initially)} onChange={(event) => change({ [name]: event.currentTarget.checked ? "1" : "0" })} />
      {label}
    </label>
  );
}
