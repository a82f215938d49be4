"""How far back in time a recurrent network's gradient can reach, and why.

The names below are the whole public surface. Each room is imported when one of its names is first
used, so that ``import gradlab`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradlab.analysis.bounds import bound_ladder as bound_ladder
    from gradlab.analysis.certificates.collection import certificates as certificates
    from gradlab.analysis.directions import directions as directions
    from gradlab.analysis.ensembles import mean_field_of as mean_field_of
    from gradlab.analysis.gated_bounds import gamma_gru as gamma_gru
    from gradlab.analysis.gated_bounds import gamma_lstm as gamma_lstm
    from gradlab.analysis.gated_field import gated_field as gated_field
    from gradlab.analysis.gates import forget_bias_for_half_life as forget_bias_for_half_life
    from gradlab.analysis.gates import gate_dynamics as gate_dynamics
    from gradlab.analysis.gates import half_life_of_forget_bias as half_life_of_forget_bias
    from gradlab.analysis.gradients import gradient_profile as gradient_profile
    from gradlab.analysis.gradients import gradient_profiles as gradient_profiles
    from gradlab.analysis.inspection import inspect as inspect
    from gradlab.analysis.jacobians import jacobian_profile as jacobian_profile
    from gradlab.analysis.lyapunov import lyapunov_from_jacobians as lyapunov_from_jacobians
    from gradlab.analysis.lyapunov import lyapunov_spectrum as lyapunov_spectrum
    from gradlab.analysis.meanfield import critical_gain as critical_gain
    from gradlab.analysis.meanfield import mean_field as mean_field
    from gradlab.analysis.nonnormal import kreiss_constant as kreiss_constant
    from gradlab.analysis.nonnormal import power_transient as power_transient
    from gradlab.analysis.outlook import outlook as outlook
    from gradlab.analysis.precision import FLOAT_FORMATS as FLOAT_FORMATS
    from gradlab.analysis.precision import precision_horizon as precision_horizon
    from gradlab.analysis.regime import regime as regime
    from gradlab.analysis.saturation import saturation as saturation
    from gradlab.analysis.spectrum import spectral_summary as spectral_summary
    from gradlab.cells.activations import ACTIVATIONS as ACTIVATIONS
    from gradlab.cells.activations import activation as activation
    from gradlab.cells.gru import GRUCell as GRUCell
    from gradlab.cells.initializers import RECURRENT as RECURRENT
    from gradlab.cells.initializers import scale_to_gamma as scale_to_gamma
    from gradlab.cells.initializers import scale_to_radius as scale_to_radius
    from gradlab.cells.joint import JointCell as JointCell
    from gradlab.cells.kinds import CELLS as CELLS
    from gradlab.cells.leaky import LeakyCell as LeakyCell
    from gradlab.cells.lstm import LSTMCell as LSTMCell
    from gradlab.cells.minimal_gated import MinimalGatedCell as MinimalGatedCell
    from gradlab.cells.stack import Network as Network
    from gradlab.cells.stack import Recurrence as Recurrence
    from gradlab.cells.vanilla import VanillaCell as VanillaCell
    from gradlab.checkpoints import load as load
    from gradlab.checkpoints.from_flax import from_flax as from_flax
    from gradlab.checkpoints.from_keras import from_keras as from_keras
    from gradlab.checkpoints.from_torch import from_torch as from_torch
    from gradlab.checkpoints.listing import list_tensors as list_tensors
    from gradlab.checkpoints.listing import propose_mapping as propose_mapping
    from gradlab.comparison import compare as compare
    from gradlab.comparison import compare_cells as compare_cells
    from gradlab.designs import design as design
    from gradlab.dynamics import analyze as analyze
    from gradlab.engine.bptt import bptt as bptt
    from gradlab.engine.clipping import clip_audit as clip_audit
    from gradlab.engine.clipping import clip_by_norm as clip_by_norm
    from gradlab.engine.clipping import clip_by_norm_with_epsilon as clip_by_norm_with_epsilon
    from gradlab.engine.clipping import clip_each_tensor as clip_each_tensor
    from gradlab.engine.losses import Readout as Readout
    from gradlab.engine.optimizers import OPTIMIZERS as OPTIMIZERS
    from gradlab.engine.optimizers import optimizer as optimizer
    from gradlab.engine.readouts import load_readout as load_readout
    from gradlab.engine.readouts import read_targets as read_targets
    from gradlab.engine.rollout import rollout as rollout
    from gradlab.engine.rollout import rollout_network as rollout_network
    from gradlab.engine.scenarios import scenario as scenario
    from gradlab.engine.scenarios import scenario_names as scenario_names
    from gradlab.engine.sequences import Sequences as Sequences
    from gradlab.engine.sequences import read_sequences as read_sequences
    from gradlab.engine.synthetic import synthetic_sequences as synthetic_sequences
    from gradlab.engine.tasks import TASKS as TASKS
    from gradlab.engine.tasks import task as task
    from gradlab.engine.tokens import read_tokens as read_tokens
    from gradlab.engine.training import Training as Training
    from gradlab.errors import AmbiguousModelError as AmbiguousModelError
    from gradlab.errors import DivergenceError as DivergenceError
    from gradlab.errors import GradlabError as GradlabError
    from gradlab.errors import InputFileError as InputFileError
    from gradlab.errors import MissingExtraError as MissingExtraError
    from gradlab.errors import ModelFileError as ModelFileError
    from gradlab.errors import NonFiniteError as NonFiniteError
    from gradlab.errors import OutputError as OutputError
    from gradlab.errors import RunFolderError as RunFolderError
    from gradlab.errors import SettingError as SettingError
    from gradlab.errors import ShapeError as ShapeError
    from gradlab.errors import UnknownNameError as UnknownNameError
    from gradlab.errors import UnreachableTargetError as UnreachableTargetError
    from gradlab.errors import WorkerError as WorkerError
    from gradlab.errors import unknown_name as unknown_name
    from gradlab.estimates import estimate as estimate
    from gradlab.norms import spectral_norm as spectral_norm
    from gradlab.norms import spectral_radius as spectral_radius
    from gradlab.records.backward import Gradients as Gradients
    from gradlab.records.certificates import Certificate as Certificate
    from gradlab.records.certificates import Certificates as Certificates
    from gradlab.records.clipping import ClipAudit as ClipAudit
    from gradlab.records.comparison import Comparison as Comparison
    from gradlab.records.design import Design as Design
    from gradlab.records.dynamics import GradientDynamics as GradientDynamics
    from gradlab.records.estimate import AnalysisEstimate as AnalysisEstimate
    from gradlab.records.gradients import GradientProfile as GradientProfile
    from gradlab.records.jacobians import JacobianProfile as JacobianProfile
    from gradlab.records.lyapunov import LyapunovSpectrum as LyapunovSpectrum
    from gradlab.records.strict import strict_json as strict_json
    from gradlab.records.trajectory import Trajectory as Trajectory
    from gradlab.records.verification import Check as Check
    from gradlab.records.verification import Verification as Verification
    from gradlab.requirements import Outcome as Outcome
    from gradlab.requirements import Requirement as Requirement
    from gradlab.requirements import check_run as check_run
    from gradlab.requirements import parsed_requirement as parsed_requirement
    from gradlab.requirements import read_requirements as read_requirements
    from gradlab.storage.comparisons import save_comparison as save_comparison
    from gradlab.storage.export import export_npz as export_npz
    from gradlab.storage.folder import refuse_to_overwrite as refuse_to_overwrite
    from gradlab.storage.runs import load_run as load_run
    from gradlab.storage.runs import save as save
    from gradlab.storage.sweep_analyses import save_sweep_analysis as save_sweep_analysis
    from gradlab.storage.sweeps import save_sweep as save_sweep
    from gradlab.storage.trainings import claim_training as claim_training
    from gradlab.storage.trainings import finish_training as finish_training
    from gradlab.storage.trainings import save_training as save_training
    from gradlab.sweeps.analyses import analyze_sweep as analyze_sweep
    from gradlab.sweeps.clusters import dask_executor as dask_executor
    from gradlab.sweeps.estimates import estimate_sweep as estimate_sweep
    from gradlab.sweeps.grids import grid as grid
    from gradlab.sweeps.parquet import require_parquet as require_parquet
    from gradlab.sweeps.parquet import save_sweep_parquet as save_sweep_parquet
    from gradlab.sweeps.pools import LocalProcesses as LocalProcesses
    from gradlab.sweeps.pools import available_cores as available_cores
    from gradlab.sweeps.sweeping import run_sweep as run_sweep
    from gradlab.sweeps.sweeping import sweep as sweep
    from gradlab.trainings import train as train
    from gradlab.verification.verifying import verify as verify

_ROOMS = {
    "gradlab.analysis.bounds": ("bound_ladder",),
    "gradlab.analysis.certificates.collection": ("certificates",),
    "gradlab.analysis.directions": ("directions",),
    "gradlab.analysis.ensembles": ("mean_field_of",),
    "gradlab.analysis.gated_bounds": ("gamma_gru", "gamma_lstm"),
    "gradlab.analysis.gated_field": ("gated_field",),
    "gradlab.analysis.gates": (
        "forget_bias_for_half_life",
        "gate_dynamics",
        "half_life_of_forget_bias",
    ),
    "gradlab.analysis.gradients": ("gradient_profile", "gradient_profiles"),
    "gradlab.analysis.inspection": ("inspect",),
    "gradlab.analysis.jacobians": ("jacobian_profile",),
    "gradlab.analysis.lyapunov": ("lyapunov_from_jacobians", "lyapunov_spectrum"),
    "gradlab.analysis.meanfield": ("critical_gain", "mean_field"),
    "gradlab.analysis.nonnormal": ("kreiss_constant", "power_transient"),
    "gradlab.analysis.outlook": ("outlook",),
    "gradlab.analysis.precision": ("FLOAT_FORMATS", "precision_horizon"),
    "gradlab.analysis.regime": ("regime",),
    "gradlab.analysis.saturation": ("saturation",),
    "gradlab.analysis.spectrum": ("spectral_summary",),
    "gradlab.cells.activations": ("ACTIVATIONS", "activation"),
    "gradlab.cells.gru": ("GRUCell",),
    "gradlab.cells.initializers": ("RECURRENT", "scale_to_gamma", "scale_to_radius"),
    "gradlab.cells.joint": ("JointCell",),
    "gradlab.cells.kinds": ("CELLS",),
    "gradlab.cells.leaky": ("LeakyCell",),
    "gradlab.cells.lstm": ("LSTMCell",),
    "gradlab.cells.minimal_gated": ("MinimalGatedCell",),
    "gradlab.cells.stack": ("Network", "Recurrence"),
    "gradlab.cells.vanilla": ("VanillaCell",),
    "gradlab.checkpoints": ("load",),
    "gradlab.checkpoints.from_flax": ("from_flax",),
    "gradlab.checkpoints.from_keras": ("from_keras",),
    "gradlab.checkpoints.from_torch": ("from_torch",),
    "gradlab.checkpoints.listing": ("list_tensors", "propose_mapping"),
    "gradlab.comparison": ("compare", "compare_cells"),
    "gradlab.designs": ("design",),
    "gradlab.dynamics": ("analyze",),
    "gradlab.engine.bptt": ("bptt",),
    "gradlab.engine.clipping": (
        "clip_audit",
        "clip_by_norm",
        "clip_by_norm_with_epsilon",
        "clip_each_tensor",
    ),
    "gradlab.engine.losses": ("Readout",),
    "gradlab.engine.optimizers": ("OPTIMIZERS", "optimizer"),
    "gradlab.engine.readouts": ("load_readout", "read_targets"),
    "gradlab.engine.rollout": ("rollout", "rollout_network"),
    "gradlab.engine.scenarios": ("scenario", "scenario_names"),
    "gradlab.engine.sequences": ("Sequences", "read_sequences"),
    "gradlab.engine.synthetic": ("synthetic_sequences",),
    "gradlab.engine.tasks": ("TASKS", "task"),
    "gradlab.engine.tokens": ("read_tokens",),
    "gradlab.engine.training": ("Training",),
    "gradlab.errors": (
        "AmbiguousModelError",
        "DivergenceError",
        "GradlabError",
        "InputFileError",
        "MissingExtraError",
        "ModelFileError",
        "NonFiniteError",
        "OutputError",
        "RunFolderError",
        "SettingError",
        "ShapeError",
        "UnknownNameError",
        "UnreachableTargetError",
        "WorkerError",
        "unknown_name",
    ),
    "gradlab.estimates": ("estimate",),
    "gradlab.norms": ("spectral_norm", "spectral_radius"),
    "gradlab.records.backward": ("Gradients",),
    "gradlab.records.certificates": ("Certificate", "Certificates"),
    "gradlab.records.clipping": ("ClipAudit",),
    "gradlab.records.comparison": ("Comparison",),
    "gradlab.records.design": ("Design",),
    "gradlab.records.dynamics": ("GradientDynamics",),
    "gradlab.records.estimate": ("AnalysisEstimate",),
    "gradlab.records.gradients": ("GradientProfile",),
    "gradlab.records.jacobians": ("JacobianProfile",),
    "gradlab.records.lyapunov": ("LyapunovSpectrum",),
    "gradlab.records.strict": ("strict_json",),
    "gradlab.records.trajectory": ("Trajectory",),
    "gradlab.records.verification": ("Check", "Verification"),
    "gradlab.requirements": (
        "Outcome",
        "Requirement",
        "check_run",
        "parsed_requirement",
        "read_requirements",
    ),
    "gradlab.storage.comparisons": ("save_comparison",),
    "gradlab.storage.export": ("export_npz",),
    "gradlab.storage.folder": ("refuse_to_overwrite",),
    "gradlab.storage.runs": ("load_run", "save"),
    "gradlab.storage.sweep_analyses": ("save_sweep_analysis",),
    "gradlab.storage.sweeps": ("save_sweep",),
    "gradlab.storage.trainings": ("claim_training", "finish_training", "save_training"),
    "gradlab.sweeps.analyses": ("analyze_sweep",),
    "gradlab.sweeps.clusters": ("dask_executor",),
    "gradlab.sweeps.estimates": ("estimate_sweep",),
    "gradlab.sweeps.grids": ("grid",),
    "gradlab.sweeps.parquet": ("require_parquet", "save_sweep_parquet"),
    "gradlab.sweeps.pools": ("available_cores", "LocalProcesses"),
    "gradlab.sweeps.sweeping": ("run_sweep", "sweep"),
    "gradlab.trainings": ("train",),
    "gradlab.verification.verifying": ("verify",),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__version__ = "0.1.0"
__all__ = ["__version__", *_HOME]


if not TYPE_CHECKING:  # type checkers shall know the names above, and no others

    def __getattr__(name: str) -> Any:
        """Import the room of a public name on its first use."""
        if name not in _HOME:
            raise AttributeError(f"module 'gradlab' has no attribute {name!r}")
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Public names."""
    return sorted(__all__)
