//! Refusals as the exceptions of the Python client.

use longbow_engine::Class;
use longbow_query::Refusal;
use pyo3::PyErr;

mod python {
    //! The classes, looked up when the first error of each is raised.
    pyo3::import_exception!(longbow.errors, DeadlineExceeded);
    pyo3::import_exception!(longbow.errors, FailedPrecondition);
    pyo3::import_exception!(longbow.errors, Internal);
    pyo3::import_exception!(longbow.errors, InvalidArgument);
    pyo3::import_exception!(longbow.errors, NotFound);
    pyo3::import_exception!(longbow.errors, ResourceExhausted);
    pyo3::import_exception!(longbow.errors, Unavailable);
    pyo3::import_exception!(longbow.errors, Unimplemented);
}

/// The exception for a refused request.
pub fn raised(refusal: Refusal) -> PyErr {
    let arguments = (refusal.code, refusal.text);
    match refusal.class {
        Class::NotFound => python::NotFound::new_err(arguments),
        Class::InvalidArgument => python::InvalidArgument::new_err(arguments),
        Class::ResourceExhausted => python::ResourceExhausted::new_err(arguments),
        Class::Unavailable => python::Unavailable::new_err(arguments),
        Class::FailedPrecondition => python::FailedPrecondition::new_err(arguments),
        Class::Unimplemented => python::Unimplemented::new_err(arguments),
        Class::DeadlineExceeded => python::DeadlineExceeded::new_err(arguments),
        Class::Internal => python::Internal::new_err(arguments),
    }
}

/// The exception for an error of the engine.
pub fn of(error: longbow_engine::Error) -> PyErr {
    raised(Refusal::from(error))
}

/// The exception for a wrong argument.
pub fn invalid(code: &'static str, text: &str) -> PyErr {
    raised(longbow_query::invalid(code, text))
}
